from __future__ import annotations

from pathlib import Path

import pytest

from qwp.migration.convert import Conversion
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import leftovers, qwp
from tests.migration.problems import encoders

TEXTS = encoders(400)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    io.save(Embeddings(TEXTS.ids, TEXTS.old), tmp_path / "old.npz")
    return tmp_path / "old.npz"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    io.save(Embeddings(TEXTS.ids[:300], TEXTS.new[:300]), tmp_path / "new.npz")
    return tmp_path / "new.npz"


def test_documents_are_converted_and_the_figures_reported(old: Path, new: Path, tmp_path: Path) -> None:
    ran = qwp("migrate", old, new, "--out", tmp_path / "x.safetensors", "--json")
    assert ran.code == 0
    assert (ran.json["command"], ran.json["decision"], ran.json["items"]) == ("migrate", "go", 400)
    assert ran.json["after"]["at_10"] > 0.9
    assert io.load(tmp_path / "x.safetensors").dim == 20
    assert not leftovers(tmp_path)
    shown = qwp("migrate", old, new)
    assert shown.code == 0
    assert "go: " in shown.out
    assert "the dimensions differ" in shown.out


def test_an_adapter_is_written(old: Path, new: Path, tmp_path: Path) -> None:
    ran = qwp("migrate", old, new, "--adapter", tmp_path / "a.json")
    assert ran.code == 0
    assert "time for a query" in ran.out
    assert "the adapter written to" in ran.out
    assert (tmp_path / "a.json").is_file()


def test_a_no_go_writes_nothing_and_exits_with_3(old: Path, new: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("".join(f"id{row} id{(row + 7) % 300}\n" for row in range(300)))
    args = ("migrate", old, new, "--pairs", pairs, "--out", tmp_path / "x.npz")
    ran = qwp(*args)
    assert ran.code == 3
    assert "no-go" in ran.out
    assert "nothing was written" in ran.err
    assert not (tmp_path / "x.npz").exists()
    assert qwp(*args, "--force").code == 3
    assert (tmp_path / "x.npz").exists()


def test_an_interrupt_tells_how_to_continue(
    old: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    args = ("migrate", old, new, "--out", tmp_path / "x.npz")
    with monkeypatch.context() as patched:
        patched.setattr(Conversion, "_save_progress", stop)
        ran = qwp(*args)
    assert ran.code == 130
    assert "x.npz is not written; the same command continues" in ran.err
    assert qwp(*args).code == 0
    assert not leftovers(tmp_path)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.npz", "{new}"], "none.npz does not exist"),
        (["{old}", "{new}", "--out", "{tmp}/x.npz", "--adapter", "{tmp}/a.npz"], "out and adapter were both given"),
        (["{old}", "{new}", "--out", "{old}"], "is one of the files to read"),
        (["{old}", "{new}", "--least", "2"], "least"),
    ],
)
def test_bad_input_is_explained(old: Path, new: Path, tmp_path: Path, args: list[str], message: str) -> None:
    ran = qwp("migrate", *(arg.format(old=old, new=new, tmp=tmp_path) for arg in args))
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "x.npz").exists()
