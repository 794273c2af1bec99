"""Attack saved results and checkpoints: edited, damaged and mixed files, and simultaneous saves.

`python -m fuzz.results --edits 2000 --flips 300 --saves 300 --seed 0`. Loading a changed result must raise an
InputError or return what was saved. `--only edit:17` or `--only flip:3` repeats one case and prints it.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer

import qwp
from fuzz.edits import FolderEdit
from qwp import Alignment, Embeddings, InputError, Lexicon, MultiAlignment
from qwp.cli.main import app
from qwp.maps.procrustes import Maps
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity
from qwp.results.saved import ALIGNMENT
from qwp.stages.stage import State

OLDER = Path(__file__).parents[1] / "tests" / "data" / "saved-0.1"
WORDS, DIM = 40, 5
Values = dict[str, Any]


# --------------------------------------------------------------------------- results to attack


@dataclass(frozen=True)
class Subject:
    """A folder to attack. load: returns comparable values; hashed: whether the result has hashes."""

    name: str
    folder: Path
    load: Callable[[Path], Values]
    hashed: bool = True


def make_alignment(run: int, *, mapped: bool = False) -> Alignment:
    """Return a small alignment; those of different runs have equal shapes and file names."""
    rng = np.random.default_rng(run)
    rotation = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    src = rng.standard_normal((WORDS, DIM))
    vectors = {"s": src.astype("f4"), "t": (src @ rotation).astype("f4")}  # float32 is what is saved
    spaces = {side: Embeddings([f"{side}{run}w{i}" for i in range(WORDS)], x) for side, x in vectors.items()}
    lexicon = Lexicon(tuple((f"s{run}w{i}", f"t{run}w{i}") for i in range(20)))
    kind: Literal["reweighted", "orthogonal"] = "reweighted" if mapped else "orthogonal"
    found = qwp.align(spaces["s"], spaces["t"], "procrustes", run, lexicon=lexicon, map=kind, refine=1, threads=1)
    found = replace(found, provenance=replace(found.provenance, seconds={}))  # equal in every process
    if not mapped:
        return found
    orders = [np.random.default_rng([run, side]).permutation(WORDS) for side in (0, 1)]
    src_side, tgt_side = replace(found.src_side, order=orders[0]), replace(found.tgt_side, order=orders[1])
    return replace(found, src_side=src_side, tgt_side=tgt_side, provenance=replace(found.provenance, order="estimated"))


def make_several(run: int) -> MultiAlignment:
    """Return two languages aligned with a hub."""
    found = make_alignment(run)
    rng = np.random.default_rng([run, 7])
    other = Embeddings([f"u{run}w{i}" for i in range(WORDS)], rng.standard_normal((WORDS, DIM)).astype("f4"))
    record = replace(found.provenance.src, sha256=other.sha256())
    second = replace(
        found, src_side=replace(found.src_side, source=other), provenance=replace(found.provenance, src=record)
    )
    return MultiAlignment("hub", {"one": found, "two": second})


def identity(run: int) -> Identity:
    """Return the identity of an interrupted run."""
    return Identity("1", "qwp", {"epsilon": 0.05}, run, {"src": "0" * 64, "tgt": "1" * 64}, {"lexicon": None})


def make_checkpoint(run: int, folder: Path) -> None:
    """Save the state of a run."""
    rng = np.random.default_rng(run)
    src, tgt = (rng.standard_normal((DIM, DIM)).astype("f4") for _ in range(2))
    state = State(
        Maps(src, tgt),
        stage="train",
        done=run,
        tensors={"best": rng.standard_normal((DIM, DIM)), "rows": np.arange(DIM)},
        values={"rate": 0.5, "best": -np.inf},
        history=({"stage": "train", "step": 1, "loss": 0.25},),
        candidates=({"start": "profiles", "order": "given", "ratio": 1.5, "refined_ratio": None},),
        initializer="profiles",
        accepted=True,
        remark="A remark.",
    )
    Checkpoint(folder).save(state, {"train": 1.5}, identity(run))


def side_values(alignment: Alignment) -> Values:
    """Return all values of an alignment."""
    values: Values = {"about": json.dumps(alignment.to_dict(), sort_keys=True)}
    for name, side in (("src", alignment.src_side), ("tgt", alignment.tgt_side)):
        arrays = {"vectors": side.space.vectors, **side.tensors()}
        values[f"{name} words"] = side.space.words
        values |= {f"{name} {key}": (array.dtype.str, array.shape, array.tobytes()) for key, array in arrays.items()}
    return values


def load_alignment(folder: Path) -> Values:
    """Load and use a result. Returns its values."""
    found = Alignment.load(folder)
    found.translate(found.src.words[:2], k=1)
    found.induce(max_words=3)
    return side_values(found)


def load_several(folder: Path) -> Values:
    """Load and use a result. Returns its values."""
    found = MultiAlignment.load(folder)
    found.pair(found.names[0], found.names[1]).induce(max_words=3)
    found.identity()
    values: Values = {"names": found.names}
    for name, alignment in found.alignments.items():
        values |= {f"{name} {key}": value for key, value in side_values(alignment).items()}
    return values


def load_checkpoint(folder: Path) -> Values:
    """Load a checkpoint. Returns its values."""
    found = Checkpoint(folder, resume=True).load(identity(1))
    if found is None:
        raise InputError("there is no checkpoint")
    state, seconds = found
    assert state.maps is not None
    maps = {name: array for name, array in zip(("map", "map.tgt"), state.maps, strict=True) if array is not None}
    arrays = {name: np.asarray(array) for name, array in {**maps, **state.tensors}.items()}
    values: Values = {key: (array.dtype.str, array.shape, array.tobytes()) for key, array in arrays.items()}
    return {**values, "about": repr((replace(state, maps=None, tensors={}), seconds))}


class Zoo:
    """All results to attack, each in a folder; names that end in `-other` are of another run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for run, suffix in ((1, ""), (2, "-other")):
            make_alignment(run).save(folder / f"pair{suffix}")
            make_alignment(run, mapped=True).save(folder / f"mapped{suffix}")
            make_several(run).save(folder / f"several{suffix}")
            make_checkpoint(run, folder / f"checkpoint{suffix}")
        for name in ("pair", "mapped", "several"):
            shutil.copytree(OLDER / name, folder / f"older-{name}")
        self.subjects = [
            Subject("pair", folder / "pair", load_alignment),
            Subject("mapped", folder / "mapped", load_alignment),
            Subject("several", folder / "several", load_several),
            Subject("checkpoint", folder / "checkpoint", load_checkpoint),
            Subject("older-pair", folder / "older-pair", load_alignment, hashed=False),
            Subject("older-mapped", folder / "older-mapped", load_alignment, hashed=False),
            Subject("older-several", folder / "older-several", load_several, hashed=False),
        ]
        self.expected = {subject.name: subject.load(subject.folder) for subject in self.subjects}

    def other(self, subject: Subject) -> Path:
        """Return a result of another run of the same kind."""
        others = {"older-pair": "older-mapped", "older-mapped": "older-pair", "older-several": "several"}
        return self.folder / others.get(subject.name, f"{subject.name}-other")


# --------------------------------------------------------------------------- judging


class Findings:
    """The findings, and how often the cases ended in each way."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.outcomes: Counter[str] = Counter()

    def add(self, case: str, what: str) -> None:
        """Add and print a finding."""
        self.found.append(f"{case}: {what}")
        print(f"FINDING {case}: {what}", file=sys.stderr)


def outcome(load: Callable[[], Values], expected: Values) -> str:
    """Return "refused", "same" or "other", or the traceback of an unexpected exception."""
    try:
        found = load()
    except InputError:
        return "refused"
    except Exception:
        return traceback.format_exc()
    return "same" if found == expected else "other"


@cache
def program() -> Any:
    """Return the command line program; building it takes longer than running it."""
    return typer.main.get_command(app)


def info(folder: Path) -> str | None:
    """Run `qwp info` on a folder. Returns what is wrong, or None."""
    for flags in ((), ("--json",)):
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        code: object = None
        try:
            with redirect_stdout(out), redirect_stderr(out):
                program().main(["info", str(folder), *flags], prog_name="qwp")
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            return traceback.format_exc()
        out.seek(0)
        text = out.read()
        if code not in (0, 2):
            return f"info ended with {code}: {text}"
        # The other form is TSV here, which prints the words of the file unchanged (qwp.showing.terminal).
        if "--json" in flags and "\x1b" in text:
            return "info printed an escape sequence"
    return None


def attack(zoo: Zoo, kind: str, number: int, seed: int, findings: Findings, *, verbose: bool = False) -> None:
    """Edit a result or flip one of its bits, and load it."""
    rng = random.Random(f"{seed} {kind} {number}")
    subject = rng.choice(zoo.subjects)
    with tempfile.TemporaryDirectory(dir=zoo.folder) as scratch:
        folder = Path(scratch) / "copy"
        shutil.copytree(subject.folder, folder)
        done, resealed = edit(zoo, subject, folder, rng) if kind == "edit" else flip(folder, rng)
        case = f"{kind}:{number} ({subject.name}{', resealed' if resealed else ''}; {done})"
        if verbose:
            print(case)
        found = outcome(lambda: subject.load(folder), zoo.expected[subject.name])
        known = found in ("refused", "same", "other")
        findings.outcomes[f"{kind} {subject.name} {found if known else 'broke'}"] += 1
        # Without hashes, or with new ones, a change can be undetectable.
        if not known or (found == "other" and subject.hashed and not resealed):
            findings.add(case, "it was loaded, but differs from what was saved" if known else found)
        for each in {folder, *(path.parent for path in folder.rglob(ALIGNMENT))}:
            wrong = info(each)
            if wrong is not None:
                findings.add(case, wrong)


def edit(zoo: Zoo, subject: Subject, folder: Path, rng: random.Random) -> tuple[str, bool]:
    """Edit a folder. Returns the edits in words, and whether the hashes were updated."""
    edits = FolderEdit(folder, zoo.other(subject), rng)
    edits.apply()
    return "; ".join(edits.done), edits.resealed and subject.hashed


def flip(folder: Path, rng: random.Random) -> tuple[str, bool]:
    """Flip one bit of one file."""
    path = rng.choice([path for path in sorted(folder.rglob("*")) if path.is_file()])
    data = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(data)), rng.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return f"{path.relative_to(folder)}, byte {at}, bit {bit}", False


# --------------------------------------------------------------------------- simultaneous saves


def _saver(folder: Path, run: int, times: int, several: bool) -> None:
    result: Alignment | MultiAlignment = make_several(run) if several else make_alignment(run, mapped=run % 2 == 1)
    for number in range(times):
        result.save(folder)
        time.sleep(0.01 * random.Random(f"{run} {number}").random())  # lets the reader run in between


def _reader(folder: Path, expected: list[Values], several: bool, done: Any, problems: Any) -> None:
    reads = 0
    while not done.is_set():
        try:
            found = (load_several if several else load_alignment)(folder)
            if found not in expected:
                problems.put("a reader got a mix of runs")
        except Exception as error:
            problems.put(f"a reader got {error!r}")
        reads += 1
    problems.put(reads)


def save_together(folder: Path, saves: int, findings: Findings, *, several: bool, savers: int = 3) -> None:
    """Save from several processes into a folder that another one reads: it must always get one complete run."""
    load, expected, each = load_several if several else load_alignment, [], -(-saves // savers)
    for run in range(savers):
        _saver(folder, run, 1, several)
        expected.append(load(folder))
    spawn = multiprocessing.get_context("spawn")
    done, problems = spawn.Event(), spawn.Queue()
    reader = spawn.Process(target=_reader, args=(folder, expected, several, done, problems))
    processes = [spawn.Process(target=_saver, args=(folder, run, each, several)) for run in range(savers)]
    for process in (reader, *processes):
        process.start()
    for process in processes:
        process.join()
    done.set()
    found = []
    while not isinstance(problem := problems.get(), int):
        found.append(problem)
    reader.join()
    found += [f"a saver ended with {process.exitcode}" for process in processes if process.exitcode != 0]
    if load(folder) not in expected:
        found.append("the final result is none of the runs")
    found += leftovers(folder)
    for text in found[:5]:
        findings.add(f"saves of {folder.name}", text)
    findings.outcomes[f"save {folder.name} done"] += savers * each
    findings.outcomes[f"save {folder.name} read meanwhile"] += problem


def leftovers(folder: Path) -> list[str]:
    """Return files that must not remain in a folder after the last save."""
    hidden = [path for path in folder.rglob("*") if path.name.startswith(".") or path.name.endswith(".tmp")]
    parts = [path for path in folder.rglob("parts-*") if path.name not in (path.parent / ALIGNMENT).read_text()]
    return [f"{path.relative_to(folder)} is left" for path in hidden + parts]


# --------------------------------------------------------------------------- command line


def run(edits: int, flips: int, saves: int, seed: int, only: str | None = None) -> Findings:
    """Run all attacks, or one case."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        zoo = Zoo(Path(scratch))
        if only is not None:
            kind, _, number = only.partition(":")
            attack(zoo, kind, int(number), seed, findings, verbose=True)
            return findings
        for kind, times in (("edit", edits), ("flip", flips)):
            for case in range(times):
                attack(zoo, kind, case, seed, findings)
        if saves:
            save_together(Path(scratch) / "together", -(-saves // 2), findings, several=False)
            save_together(Path(scratch) / "several-together", saves // 2, findings, several=True)
    return findings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.results", description=__doc__)
    parser.add_argument("--edits", type=int, default=2000)
    parser.add_argument("--flips", type=int, default=300)
    parser.add_argument("--saves", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="edit:N|flip:N", help="run one case and print it")
    chosen = parser.parse_args(arguments)
    begin = time.monotonic()
    findings = run(chosen.edits, chosen.flips, chosen.saves, chosen.seed, chosen.only)
    for name, count in sorted(findings.outcomes.items()):
        print(f"{count:6}  {name}")
    print(f"{len(findings.found)} findings in {time.monotonic() - begin:.0f} s")
    return 1 if findings.found else 0


if __name__ == "__main__":
    sys.exit(main())
