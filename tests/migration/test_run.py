from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import qwp
from qwp.errors import InputError
from qwp.migration.adapter import Adapter
from qwp.migration.convert import Conversion
from qwp.migration.run import GO, NO_GO, Design, Report, migrate
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.migration.problems import encoders

TEXTS = encoders(900)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The old vectors of all texts, and the new ones of 400."""
    return _save(tmp_path, "old", slice(None)), _save(tmp_path, "new", slice(0, 400))


def _save(folder: Path, side: str, rows: slice) -> Path:
    io.save(Embeddings(TEXTS.ids[rows], getattr(TEXTS, side)[rows]), folder / f"{side}.npz")
    return folder / f"{side}.npz"


def test_queries_of_the_new_model_find_the_converted_documents(files: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = files
    before = old.read_bytes()
    seen: list[int] = []
    done = qwp.migrate(old, new, out=tmp_path / "x.npz", progress=seen.append)
    assert (done.report.decision, done.report.pairs, done.items) == (GO, 400, 900)
    assert done.report.after is not None
    assert done.report.after.at_10 > 0.95
    assert done.report.before is None
    assert (done.report.after.queries, done.report.after.documents) == (80, 900)
    written = io.load(tmp_path / "x.npz")
    assert written.words == TEXTS.ids
    assert TEXTS.recall(written.vectors, TEXTS.new) > 0.8
    assert old.read_bytes() == before
    assert seen == [900]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.npz", "old.npz", "x.npz"]


def test_an_adapter_lets_new_queries_search_the_old_documents(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = migrate(*files, adapter=tmp_path / "a.npz")
    assert (done.report.convert, done.report.decision, done.out) == ("queries", GO, tmp_path / "a.npz")
    assert done.report.seconds_per_query is not None
    adapter = Adapter.load(tmp_path / "a.npz")
    assert TEXTS.recall(TEXTS.old, adapter(TEXTS.new)) > 0.8


def test_pairs_of_another_text_are_a_no_go(files: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = [(TEXTS.ids[row], TEXTS.ids[(row + 200) % 400]) for row in range(400)]
    done = migrate(*files, pairs=wrong, out=tmp_path / "x.npz")
    assert done.report.decision == NO_GO
    assert "of 80 held-out queries find their document" in done.report.reason
    assert not (tmp_path / "x.npz").exists()
    assert not list(tmp_path.glob("*.partial"))
    forced = migrate(*files, pairs=wrong, out=tmp_path / "x.npz", force=True)
    assert (forced.report.decision, forced.items) == (NO_GO, 900)


def test_equal_dimensions_are_measured_before_too(tmp_path: Path) -> None:
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((24, 24)))[0].astype(np.float32)
    io.save(Embeddings(TEXTS.ids, TEXTS.old @ turn), tmp_path / "turned.npz")
    report = migrate(_save(tmp_path, "old", slice(None)), tmp_path / "turned.npz").report
    assert report.before is not None
    assert report.after is not None
    assert report.before.at_10 < 0.2
    assert report.after.at_1 == 1.0
    assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


def test_few_pairs_are_completed_by_an_alignment() -> None:
    new = dict(zip(TEXTS.ids[:30], TEXTS.new[:30], strict=True))
    new |= {f"other {id}": row for id, row in zip(TEXTS.ids[30:], TEXTS.new[30:], strict=True)}
    old = dict(zip(TEXTS.ids, TEXTS.old, strict=True))
    done = migrate(old, new, steps=1, refine=3, verdict="none")
    assert done.report.pairs == 30
    assert any("aligned pairs" in each["map"] for each in done.report.tried)
    assert done.report.verdict == "unjudged"


@pytest.mark.slow
def test_pairs_decide_what_is_held_out_and_whether_the_rest_is_aligned() -> None:
    design = Design(min_pairs=10, held_out=3, well_determined=2, min_unpaired=5)
    assert [design.held(pairs) for pairs in (9, 10, 14, 15, 100)] == [0, 2, 2, 3, 3]
    assert [design.aligns(pairs, 5, dim=4) for pairs in (0, 7, 8)] == [True, True, False]
    assert [design.aligns(pairs, 4, dim=4) for pairs in (0, 7)] == [True, False]


def test_without_pairs_the_verdict_decides() -> None:
    shuffled = TEXTS.new[np.random.default_rng(0).permutation(900)]
    with pytest.raises(InputError, match="no id is in both the old and the new vectors"):
        migrate(TEXTS.old, shuffled)
    done = migrate(TEXTS.old, shuffled, pairs=[])
    assert (done.report.pairs, done.report.after) == (0, None)
    assert "nothing was measured" in done.report.reason
    assert TEXTS.recall(done.adapter(TEXTS.old), TEXTS.new) > 0.8


def test_bad_requests_are_explained(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="out and adapter were both given"):
        migrate(*files, out=tmp_path / "x.npz", adapter=tmp_path / "a.npz")
    with pytest.raises(InputError, match="is no name for an adapter"):
        migrate(*files, adapter=tmp_path / "a.txt")
    with pytest.raises(InputError, match="is one of the files to read"):
        migrate(*files, out=files[0])


# Kills itself after some batches, in the middle of writing the next.
KILLED = """
import os, signal, sys
from qwp.migration import convert, run
old, new, out, kills_at = *sys.argv[1:4], int(sys.argv[4])
class Small(convert.Conversion):
    def __init__(self, *args): super().__init__(*args, batch=50)
run.Conversion = Small
saves = 0
save = convert.Conversion._save_progress
def killing(self, done):
    global saves
    saves += 1
    if saves == kills_at:
        os.kill(os.getpid(), signal.SIGKILL)
    save(self, done)
convert.Conversion._save_progress = killing
run.migrate(old, new, out=out)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on Windows")
def test_a_killed_conversion_continues_to_the_same_file(files: tuple[Path, Path], tmp_path: Path) -> None:
    def attempt(out: Path, kills_at: int) -> int:
        args = [sys.executable, "-c", KILLED, *map(str, (*files, out, kills_at))]
        return subprocess.run(args, check=False, timeout=120).returncode

    assert attempt(tmp_path / "whole.npz", 0) == 0
    out = tmp_path / "x.npz"
    for kills_at in (1, 4, 9):
        assert attempt(out, kills_at) == -9
        assert not out.exists()
        assert (tmp_path / "x.npz.partial").is_dir()
    progress = json.loads((tmp_path / "x.npz.partial" / "progress.json").read_text())
    assert progress["rows"] == 50 * (3 + 8)
    assert attempt(out, 0) == 0
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not (tmp_path / "x.npz.partial").exists()


def test_another_conversion_does_not_continue(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "x.npz"

    def stop(items: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(*files, out=out, progress=stop)
    assert (tmp_path / "x.npz.partial").is_dir()
    done = migrate(*files, out=out, seed=1)
    assert done.items == 900
    assert not (tmp_path / "x.npz.partial").exists()


def test_a_removal_that_was_interrupted_is_finished(files: tuple[Path, Path], tmp_path: Path) -> None:
    left = tmp_path / "x.npz.partial"
    left.mkdir()
    (left / "vectors.f32").write_bytes(b"1234")
    assert migrate(*files, out=tmp_path / "x.npz").items == 900
    assert not left.exists()


def test_a_folder_that_is_no_conversion_is_never_removed(files: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "x.npz.partial"
    other.mkdir()
    (other / "letters.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds letters.txt, expected nothing but an unfinished conversion"):
        migrate(*files, out=tmp_path / "x.npz")
    assert (other / "letters.txt").read_text() == "mine"


def test_a_new_folder_whose_partial_files_are_left_is_finished(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lancedb = pytest.importorskip("lancedb", reason='not installed: pip install "qwp[lancedb]"')
    rows = [{"id": id, "vector": row.tolist()} for id, row in zip(TEXTS.ids, TEXTS.old, strict=True)]
    lancedb.connect(str(tmp_path / "lance")).create_table("items", rows)
    old, out = f"{tmp_path / 'lance'}#items", tmp_path / "new"
    discard = Conversion.discard

    def interrupted(self: Conversion) -> None:
        if out.exists():
            raise KeyboardInterrupt
        discard(self)

    monkeypatch.setattr(Conversion, "discard", interrupted)
    with pytest.raises(KeyboardInterrupt):
        migrate(old, files[1], out=out)
    assert (tmp_path / "new.partial").is_dir()
    monkeypatch.undo()
    with pytest.raises(InputError, match="exists, expected the name of a new folder"):
        migrate(old, files[1], out=out, seed=1)
    assert migrate(old, files[1], out=out).items == 900
    assert not (tmp_path / "new.partial").exists()
    with pytest.raises(InputError, match="exists, expected the name of a new folder"):
        migrate(old, files[1], out=out)
