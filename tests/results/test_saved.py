"""Saving and loading: exact, atomic and validated."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import Alignment, Embeddings, InputError, Lexicon, MultiAlignment
from qwp.results import saved, schema
from qwp.results.saved import (
    ALIGNMENT,
    CONTENT,
    MAPS_FILE,
    PART_FILES,
    SCHEMA,
    SEVERAL,
    read_alignment_index,
)
from qwp.spaces import io
from qwp.spaces.io import locks
from tests.cli.conftest import qwp as run_qwp
from tests.problems import Array, rotation
from tests.spaces.test_frequency import shuffled, with_traces


def parts(folder: Path) -> Path:
    """Return the parts folder of a result."""
    [found] = folder.glob("parts-*")
    return found


def names(folder: Path) -> list[str]:
    """Return the files in a folder, without the parts folder."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("parts-"))


def index(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / ALIGNMENT).read_text("ascii"))
    return found


def assert_same(found: Alignment, expected: Alignment) -> None:
    for one, other in ((found.src_side, expected.src_side), (found.tgt_side, expected.tgt_side)):
        assert one.space.words == other.space.words
        np.testing.assert_array_equal(one.space.vectors, other.space.vectors)
        assert one.tensors().keys() == other.tensors().keys()
        for name, tensor in one.tensors().items():
            np.testing.assert_array_equal(tensor, other.tensors()[name], strict=True)
    assert found.to_dict() == json.loads(json.dumps(expected.to_dict()))
    assert (found.quality, found.provenance) == (expected.quality, expected.provenance)


@pytest.fixture(scope="module")
def other(aligned: Alignment) -> Alignment:
    """Return another run of the same shape, with a rotated target space."""
    turn = rotation(aligned.src.dim, 5).astype("f4")
    assert aligned.tgt_map is not None
    provenance = replace(aligned.provenance, seed=9)
    tgt_side = replace(aligned.tgt_side, map=aligned.tgt_map @ turn)
    src_side = replace(aligned.src_side, map=aligned.src_map @ turn)
    return replace(aligned, src_side=src_side, tgt_side=tgt_side, provenance=provenance)


# --------------------------------------------------------------------------- there and back


def test_save_and_load_give_the_same_alignment(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path / "a" / "b")
    assert_same(Alignment.load(tmp_path / "a" / "b"), aligned)
    again = Alignment.load(tmp_path / "a" / "b")
    np.testing.assert_array_equal(again.mapped("src"), aligned.mapped("src"))
    np.testing.assert_array_equal(again.mapped("tgt"), aligned.mapped("tgt"))


def test_the_layout_is_an_index_and_parts_with_their_hashes(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    assert names(tmp_path) == [ALIGNMENT]
    assert {path.name for path in parts(tmp_path).iterdir()} == set(PART_FILES)
    about = index(tmp_path)
    assert about["schema"] == SCHEMA
    assert about["parts"]["folder"] == parts(tmp_path).name
    for name, found in about["parts"]["files"].items():
        data = (parts(tmp_path) / name).read_bytes()
        assert found == {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    own = about.pop("sha256")
    assert own == schema.digest(about)
    # The parts are ordinary vector files.
    assert io.load(parts(tmp_path) / "src.safetensors").words == aligned.src.words


def test_saved_result_carries_version_config_seed_and_hashes(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    about = index(tmp_path)["provenance"]
    assert about["version"] == qwp.__version__
    assert about["seed"] == 0
    assert about["config"]["coreset"] == "random"
    assert [about[side]["sha256"] for side in ("src", "tgt")] == [aligned.src.sha256(), aligned.tgt.sha256()]


def test_float64_maps_stay_float64(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    src, tgt = (Embeddings([f"{s}{i}" for i in range(30)], rng.standard_normal((30, 4)).astype("f4")) for s in "st")
    lexicon = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(20)))
    found = qwp.align(src, tgt, "procrustes", lexicon=lexicon, dtype="float64", threads=1)
    found.save(tmp_path)
    assert_same(Alignment.load(tmp_path), found)
    assert Alignment.load(tmp_path).src_map.dtype == np.float64


def test_numpy_parameters_can_be_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    src, tgt = (Embeddings([f"{s}{i}" for i in range(30)], rng.standard_normal((30, 4)).astype("f4")) for s in "st")
    lexicon = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(20)))
    found = qwp.align(src, tgt, "procrustes", lexicon=lexicon, csls_k=np.int64(3), threads=1)  # type: ignore[arg-type]
    found.save(tmp_path)
    assert Alignment.load(tmp_path).provenance.config["csls_k"] == 3


def test_nan_in_the_history_becomes_null(aligned: Alignment, tmp_path: Path) -> None:
    odd = replace(aligned, history=[{"stage": "loop", "step": 1, "objective": float("nan"), "best": [-np.inf]}])
    odd.save(tmp_path)
    assert Alignment.load(tmp_path).history == [{"stage": "loop", "step": 1, "objective": None, "best": [None]}]


def test_a_path_that_is_not_utf_8_can_be_recorded(aligned: Alignment, tmp_path: Path) -> None:
    record = replace(aligned.provenance.src, path=os.fsdecode(b"caf\xe9.vec"))
    replace(aligned, provenance=replace(aligned.provenance, src=record)).save(tmp_path)
    assert Alignment.load(tmp_path).provenance.src == record
    ran = run_qwp("info", tmp_path)
    assert (ran.code, "caf\\udce9.vec" in ran.out.replace("\n", "")) == (0, True)


# --------------------------------------------------------------------------- estimated orders


@pytest.fixture(scope="module")
def disordered() -> tuple[Alignment, Array]:
    """Return an alignment of 600 shuffled words with an ordered space, and the rank of each source word."""
    tgt = with_traces(600, 12, 100)
    src, ranks = shuffled(with_traces(600, 12, 0), 0)
    spaces = [Embeddings([f"{s}{i}" for i in range(600)], vectors) for s, vectors in (("s", src), ("t", tgt))]
    lexicon = Lexicon(tuple((f"s{i}", f"t{rank}") for i, rank in enumerate(ranks) if rank < 100))
    return qwp.align(spaces[0], spaces[1], "procrustes", lexicon=lexicon, threads=1, verdict="quick"), ranks


def test_an_estimated_order_is_saved_and_used(disordered: tuple[Alignment, Array], tmp_path: Path) -> None:
    alignment, ranks = disordered
    order = alignment.src_side.order
    assert order is not None
    assert not np.array_equal(order, np.arange(600))
    alignment.save(tmp_path / "saved")
    again = Alignment.load(tmp_path / "saved")
    assert_same(again, alignment)
    assert again.src_side.order is not None
    np.testing.assert_array_equal(again.src_side.order, order)
    first = [pair.src for pair in again.induce(max_words=10, mutual_only=False)]
    assert first == [f"s{row}" for row in order[:10]]
    # They are frequent words, unlike the first ten of the file.
    assert np.mean(ranks[order[:10]]) < np.mean(ranks[:10])
    ran = run_qwp("lexicon", tmp_path / "saved", "--max-words", 10, "--all", "--out", tmp_path / "l.tsv")
    assert ran.code == 0
    lines = (tmp_path / "l.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[0] for line in lines] == first


def test_a_pair_of_several_languages_keeps_their_orders(disordered: tuple[Alignment, Array], tmp_path: Path) -> None:
    alignment, _ = disordered
    MultiAlignment("t", {"s": alignment, "u": alignment}).save(tmp_path)
    found = MultiAlignment.load(tmp_path)
    assert alignment.src_side.order is not None
    assert alignment.tgt_side.order is not None
    first = [f"s{row}" for row in alignment.src_side.order[:10]]
    for pair in (found.pair("s", "t"), found.pair("s", "u")):
        assert [each.src for each in pair.induce(max_words=10, mutual_only=False)] == first
        assert pair.provenance.order == "estimated"
    back = found.pair("t", "s").induce(max_words=10, mutual_only=False)
    assert [each.src for each in back] == [f"t{row}" for row in alignment.tgt_side.order[:10]]


# --------------------------------------------------------------------------- saves that fail


def failing(where: object, name: str, call: int, error: BaseException, patch: pytest.MonkeyPatch) -> None:
    """Make the n-th call of a function of the operating system fail."""
    real, calls = getattr(where, name), itertools.count(1)

    def fail_at_last(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == call:
            raise error
        return real(*args, **kwargs)

    patch.setattr(where, name, fail_at_last)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize(
    ("where", "name", "call"),
    # A save flushes five parts, their folder and the index; then it renames the folder of the parts and the index.
    [(os, "fsync", 1), (os, "fsync", 5), (os, "fsync", 7), (Path, "rename", 1), (Path, "replace", 5)],
)
def test_a_failed_save_keeps_the_earlier_result(
    aligned: Alignment,
    other: Alignment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    call: int,
    error: BaseException,
) -> None:
    aligned.save(tmp_path / "old")
    (tmp_path / "old" / "notes.txt").write_text("mine")
    for folder in ("old", "new"):
        with monkeypatch.context() as patch:
            failing(where, name, call, error, patch)
            with pytest.raises(type(error)):
                other.save(tmp_path / folder)
    assert_same(Alignment.load(tmp_path / "old"), aligned)
    assert names(tmp_path / "old") == [ALIGNMENT, "notes.txt"]
    assert len(list(tmp_path.glob("old/parts-*"))) == 1
    # A new folder is removed again.
    assert not (tmp_path / "new").exists()
    other.save(tmp_path / "old")
    assert_same(Alignment.load(tmp_path / "old"), other)


@pytest.mark.parametrize("moment", ["after the rename", "before cleaning up"])
def test_an_interrupt_after_the_commit_keeps_the_new_result(
    aligned: Alignment, other: Alignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    aligned.save(tmp_path)
    replace_file, unlink = Path.replace, Path.unlink

    def then_interrupt(self: Path, target: Path) -> Path:
        replace_file(self, target)
        if moment == "after the rename" and target.name == ALIGNMENT:
            raise KeyboardInterrupt
        return target

    def interrupt(self: Path, missing_ok: bool = False) -> None:
        if moment == "before cleaning up" and self.name == SEVERAL:  # the first file that is cleaned up
            raise KeyboardInterrupt
        unlink(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", then_interrupt)
        patch.setattr(Path, "unlink", interrupt)
        with pytest.raises(KeyboardInterrupt):
            other.save(tmp_path)
    assert_same(Alignment.load(tmp_path), other)
    # The next save removes the parts of the older result.
    assert len(list(tmp_path.glob("parts-*"))) == 2
    aligned.save(tmp_path)
    assert len(list(tmp_path.glob("parts-*"))) == 1
    assert_same(Alignment.load(tmp_path), aligned)


# Only these functions change what is on the disk: a kill before a flush equals one before the next rename.
STEPS = ("rename", "replace", "unlink", "rmdir")


def died_at(step: int, save: Callable[[], object]) -> bool:
    """Save in a process that exits before the n-th change of the disk, as if killed. False if there are fewer."""
    child = os.fork()
    if child == 0:
        done = [0]

        def dying(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                done[0] += 1
                if done[0] == step:
                    os._exit(9)
                return real(*args, **kwargs)

            return call

        for name in STEPS:
            setattr(os, name, dying(getattr(os, name)))
        try:
            save()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are started in another way here")
def test_an_unfinished_save_is_no_result(aligned: Alignment, tmp_path: Path) -> None:
    unfinished = 0
    for step in itertools.count(1):
        folder = tmp_path / str(step)
        if not died_at(step, partial(aligned.save, folder)):
            break
        if not (folder / ALIGNMENT).exists():
            unfinished += len(list(folder.glob("parts-*")))
            with pytest.raises(InputError, match=f"holds no {ALIGNMENT}"):
                Alignment.load(folder)
    assert unfinished >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are started in another way here")
def test_a_kill_at_any_step_keeps_the_earlier_or_the_new_result(
    aligned: Alignment, other: Alignment, tmp_path: Path
) -> None:
    found, step = [], 1
    aligned.save(tmp_path)
    while died_at(step, lambda: other.save(tmp_path)):
        result = Alignment.load(tmp_path)
        found.append(result.provenance.seed)
        assert_same(result, aligned if found[-1] == aligned.provenance.seed else other)
        aligned.save(tmp_path)
        assert (names(tmp_path), len(list(tmp_path.iterdir()))) == ([ALIGNMENT], 2)
        step += 1
    assert_same(Alignment.load(tmp_path), other)
    # First the earlier result, from some step on the new one.
    assert found == sorted(found)
    assert set(found) == {aligned.provenance.seed, other.provenance.seed}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are started in another way here")
def test_a_kill_at_any_step_of_several_languages_leaves_no_silent_mix(
    aligned: Alignment, other: Alignment, tmp_path: Path
) -> None:
    earlier, later = (MultiAlignment("t", {"s": each, "u": each}) for each in (aligned, other))
    found, step = [], 1
    earlier.save(tmp_path)
    while died_at(step, lambda: later.save(tmp_path)):
        try:
            [seed] = {each.provenance.seed for each in MultiAlignment.load(tmp_path).alignments.values()}
        except InputError:
            seed = 5
            with pytest.raises(InputError, match="is not of the same run as"):
                MultiAlignment.load(tmp_path)
        found.append(seed)
        earlier.save(tmp_path)
        assert sorted(path.name for path in tmp_path.rglob("*") if path.name.startswith(".")) == []
        assert len(list(tmp_path.glob("*/parts-*"))) == 2
        step += 1
    assert MultiAlignment.load(tmp_path).identity().seed == 9
    # The earlier result, then an error while the indexes are renamed, then the new result.
    assert found == sorted(found)
    assert set(found) == {0, 5, 9}
    assert found.count(5) == 2


def test_a_save_removes_leftovers_and_nothing_else(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    stale = [".parts-0123456789abcdef.tmp", ".alignment.json.0a1b2c3d.tmp", ".multi.json.0a1b2c3d.tmp"]
    (tmp_path / stale[0]).mkdir()
    (tmp_path / stale[0] / ".src.safetensors.0a1b2c3d.tmp").write_text("x")
    for name in stale[1:]:
        (tmp_path / name).write_text("x")
    (tmp_path / locks.LOCK_FILE).touch()
    unnamed = tmp_path / "parts-fedcba9876543210"
    shutil.copytree(parts(tmp_path), unnamed)
    mine = ["notes.txt", "src.vec", "parts-of-speech", ".hidden", ".src.vec.tmp", "parts-0123", "alignment.json.bak"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    full = tmp_path / "parts-00000000000000aa"
    full.mkdir()
    (full / "thesis.txt").write_text("mine")
    aligned.save(tmp_path)
    assert not unnamed.exists()
    assert (full / "thesis.txt").read_text() == "mine"
    shutil.rmtree(full)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {ALIGNMENT, *mine, index(tmp_path)["parts"]["folder"]}
    assert all((tmp_path / name).read_text() == "mine" for name in mine)
    assert_same(Alignment.load(tmp_path), aligned)


def test_invalid_content_is_not_saved(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    spoilt = aligned.src_map.copy()
    spoilt[0, 0] = np.nan
    for bad, message in (
        (replace(aligned, src_side=replace(aligned.src_side, map=spoilt)), "src_map holds NaN"),
        (
            replace(aligned, src_side=replace(aligned.src_side, map=spoilt[:3])),
            r"src_map is float32 of shape \(3, 12\)",
        ),
        (
            replace(aligned, src_side=replace(aligned.src_side, order=np.zeros(400, int))),
            "src_order does not name each",
        ),
        (replace(aligned, provenance=replace(aligned.provenance, seed=-1)), "provenance.seed is -1"),
        (replace(aligned, quality=replace(aligned.quality, ratio=float("nan"))), "quality.ratio is"),
    ):
        with pytest.raises(InputError, match=message):
            bad.save(tmp_path)
        assert_same(Alignment.load(tmp_path), aligned)
    with pytest.raises(InputError, match="is a file"):
        aligned.save(tmp_path / ALIGNMENT)


# --------------------------------------------------------------------------- damage


def test_every_file_is_compared_with_its_hash(aligned: Alignment, other: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path / "a")
    other.save(tmp_path / "b")
    for name in PART_FILES:
        path = parts(tmp_path / "a") / name
        data = path.read_bytes()
        changed = {
            "has .* bytes": data[:-1],
            "has changed since it was saved": data[:40] + bytes([data[40] ^ 4]) + data[41:],
        }
        if name == MAPS_FILE:
            changed["has changed since it was save"] = (parts(tmp_path / "b") / name).read_bytes()
        for message, content in changed.items():
            path.write_bytes(content)
            with pytest.raises(InputError, match=f"{name} {message}.*align again, or copy the folder again"):
                Alignment.load(tmp_path / "a")
        path.unlink()
        with pytest.raises(InputError, match=f"{name} is missing: align again"):
            Alignment.load(tmp_path / "a")
        assert run_qwp("info", tmp_path / "a").code == 2
        path.write_bytes(data)
    assert_same(Alignment.load(tmp_path / "a"), aligned)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: "", "damaged"),
        (lambda text: "{", "damaged"),
        (lambda text: "[]", "damaged"),
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: text.replace("0", "1", 1), "was edited"),
        (lambda text: text.replace('"seed": 0', '"seed": 1'), "was edited"),
        (lambda text: text.replace('"succeeded"', '"failed"'), "was edited"),
        (lambda text: text.replace('"parts-', '"parts-0', 1), "was edited"),
        (lambda text: text.replace('"seed": 0', '"seed": NaN'), "was edited"),
        (lambda text: text.replace('"seed": 0', f'"seed": {"9" * 5000}'), "digits"),
        (lambda text: text.replace('"seed": 0', '"seed": 0, "seed": 0'), "more than once"),
        (lambda text: text.replace('"seed": 0', f'"seed": {"[" * 5000}{"]" * 5000}'), "nested"),
        (lambda text: '{"schema": 99}', "has schema 99, this version of qwp reads 1, 2 and 3: install the version"),
        (lambda text: '{"schema": "2"}', "has schema '2'"),
        (lambda text: '{"schema": true}', "has schema True"),
        (lambda text: "{}", "has schema None"),
        (lambda text: '{"schema": 2}', "was edited"),
        (lambda text: '{"schema": 1}', "provenance is missing"),
    ],
)
def test_edited_indexes_are_refused(
    aligned: Alignment, tmp_path: Path, edit: Callable[[str], str], message: str
) -> None:
    aligned.save(tmp_path)
    path = tmp_path / ALIGNMENT
    edited = edit(path.read_text())
    assert edited != path.read_text()
    path.write_text(edited)
    with pytest.raises(InputError, match=message) as found:
        Alignment.load(tmp_path)
    assert str(path) in str(found.value)
    ran = run_qwp("info", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")


def test_white_space_may_change(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    path = tmp_path / ALIGNMENT
    path.write_text(json.dumps(index(tmp_path), sort_keys=True))
    assert_same(Alignment.load(tmp_path), aligned)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
@pytest.mark.parametrize("name", [ALIGNMENT, SEVERAL, "part"])
def test_a_pipe_does_not_block(aligned: Alignment, tmp_path: Path, name: str) -> None:
    aligned.save(tmp_path)
    path = parts(tmp_path) / MAPS_FILE if name == "part" else tmp_path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert run_qwp("info", tmp_path).code == 2
    with pytest.raises(InputError):
        (MultiAlignment if name == SEVERAL else Alignment).load(tmp_path)


# --------------------------------------------------------------------------- at the same time


def test_a_reader_whose_parts_are_replaced_reads_the_new_ones(
    aligned: Alignment, other: Alignment, tmp_path: Path
) -> None:
    aligned.save(tmp_path)
    saves: list[Path] = []

    def build() -> Alignment:
        stored = read_alignment_index(tmp_path)
        if not saves:
            saves.append(other.save(tmp_path))
        return Alignment.from_stored(stored)

    assert_same(saved.read(tmp_path, ALIGNMENT, build), other)


def test_a_reader_does_not_try_forever(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    attempts: list[Path] = []

    def build() -> Alignment:
        stored = read_alignment_index(tmp_path)
        attempts.append(aligned.save(tmp_path))
        return Alignment.from_stored(stored)

    with pytest.raises(InputError, match="is missing"):
        saved.read(tmp_path, ALIGNMENT, build)
    assert len(attempts) == saved.ATTEMPTS


def test_reading_writes_nothing(aligned: Alignment, tmp_path: Path) -> None:
    aligned.save(tmp_path)
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path, *tmp_path.rglob("*")))
    Alignment.load(tmp_path)
    assert run_qwp("info", tmp_path).code == 0
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path, *tmp_path.rglob("*"))) == before


def test_saved_content_fits_the_schema(aligned: Alignment, tmp_path: Path) -> None:
    assert CONTENT.problem(aligned.checked_content(), "") is None
    aligned.save(tmp_path)
    stored = read_alignment_index(tmp_path)
    assert (stored.path, stored.schema) == (tmp_path / ALIGNMENT, SCHEMA)
    assert stored.content == aligned.checked_content()
    assert stored.sha256 == index(tmp_path)["sha256"]
    assert set(stored.parts) == set(PART_FILES)


@pytest.mark.parametrize("name", ["provenance", "normalization", "quality", "history"])
def test_required_entries_may_not_be_missing(aligned: Alignment, name: str) -> None:
    content = aligned.checked_content()
    del content[name]
    assert CONTENT.problem(content, "") == f"{name} is missing"


def change(*keys: str, to: object) -> Callable[[dict[str, Any]], None]:
    def edit(about: dict[str, Any]) -> None:
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            change("provenance", "src", "n_words", to=399),
            "holds 400 x 12 vectors, the alignment was made with 399 x 12",
        ),
        (
            change("provenance", "src", "dim", to=13),
            r"src_map is float32 of shape \(12, 12\), expected float32 or float64 of shape \(13, 12\)",
        ),
        (change("provenance", "seed", to="0"), "provenance.seed is '0'; expected a whole number"),
        (change("provenance", "config", to=[]), r"provenance.config is \[\]; expected an object"),
        (change("provenance", "config", "start", to={}), "provenance.config.start is"),
        (change("provenance", "src", "path", to=3), "provenance.src.path is 3"),
        (change("provenance", "more", to=3), "provenance.'more' is not known"),
        (
            change("normalization", "src", to=["whiten"]),
            r"normalization.src\[0\] is 'whiten'; expected one of unit, cent",
        ),
        (change("normalization", "src", to=["unit"]), "src_mean_0 is not known"),
        (change("normalization", "src", to=["center"] * 2), "src_mean_1 is missing"),
        (change("quality", "verdict", to="real"), "quality.verdict is 'real'"),
        (change("quality", "ratio", to=None), "quality.ratio is None; expected a finite number"),
        (change("quality", "fitted", to=None), "quality.fitted is None; expected an object"),
        (change("history", to={}), "history is {}; expected a list"),
        (change("history", to=[None]), r"history\[0\] is None"),
        (change("parts", to=None), "parts is None"),
        (change("parts", "folder", to="../elsewhere"), "parts.folder is '../elsewhere'"),
        (change("parts", "folder", to="/etc"), "parts.folder is '/etc'"),
        (
            change("parts", "files", "../../x", to={"sha256": "0" * 64, "bytes": 1}),
            "a name in parts.files is '../../x'",
        ),
        (change("parts", "files", to={}), "parts.files.maps.safetensors is missing"),
        (change("schema", to=4), "has schema 4"),
    ],
)
def test_invalid_content_with_the_right_hash_is_refused(
    aligned: Alignment, tmp_path: Path, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    aligned.save(tmp_path)
    about = index(tmp_path)
    edit(about)
    del about["sha256"]
    (tmp_path / ALIGNMENT).write_text(json.dumps({**about, "sha256": schema.digest(about)}))
    with pytest.raises(InputError, match=message):
        Alignment.load(tmp_path)
    ran = run_qwp("info", tmp_path)
    assert ran.code in (0, 2)
    assert "internal" not in ran.err
