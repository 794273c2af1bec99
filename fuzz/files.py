"""Damage valid files at random and read them: only a QwpError may result, quickly and in bounded memory.

``python -m fuzz.files --cases 100000 --seed 0`` runs cases 0 to 99,999 on all processors. ``--only CASE`` runs one of
them again and shows where it fails; a case depends on the seed and its number only. A finding is

- an exception that is no QwpError, or one caused by a lack of memory;
- a case that takes longer than SECONDS, a worker that dies, a file that stays open;
- another vector for a word of a file that was only cut or continued;
- a difference between reading in batches and reading at once;
- a difference after writing what was read and reading it again.

Workers get 1 GiB of address space beyond what they start with.
"""

from __future__ import annotations

import argparse
import gzip
import io as bytes_io
import json
import logging
import multiprocessing
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from multiprocessing.context import SpawnProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from qwp.errors import QwpError
from qwp.spaces import io
from qwp.spaces.child import LIBRARIES
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon

SECONDS = 8  # a reader in a child process may compute for 4 s, on a busy processor
MEMORY = 1 << 30
_SHOWN = 10
_MAX_DEATHS = 20

Rng = random.Random
Mutation = Callable[[Rng, bytes], bytes]


@dataclass(frozen=True)
class Sample:
    """A valid file: its name and content, the content of its sidecar of words, and the words and vectors in it."""

    name: str
    content: bytes
    sidecar: bytes | None = None
    space: Embeddings | None = None
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass
class Case:
    """A damaged file, and the steps that damaged it."""

    sample: Sample
    content: bytes
    sidecar: bytes | None
    steps: list[str] = field(default_factory=list)

    @property
    def only_cut_or_continued(self) -> bool:
        """Whether the remaining rows must be unchanged."""
        return self.steps in (["cut"], ["continued"])


@dataclass(frozen=True)
class Finding:
    """A failure in a case."""

    case: int
    what: str
    detail: str = ""


class TooSlowError(BaseException):
    """Raised by the alarm; no Exception, so that no reader takes it for a damaged file."""


# ---------------------------------------------------------------------------------------------------- valid files

_WORDS = [
    *(
        "the",
        "12",
        "-0",
        "=10",
        "é",
        "日本",
        "a\u00a0b",
        "😀",
        "{",
        "nan",
        "1e5",
        "x" * 300,
        "\u2028",
        "a\rb",
        "\ufeff",
    ),
]


@cache
def samples() -> tuple[Sample, ...]:
    """Return small valid files of every format; the same ones each time."""
    rng = np.random.default_rng(0)
    made: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        for dim, count in ((1, 3), (4, 15), (3, 40)):
            words = [*_WORDS[: count - 1], *(f"w{i}" for i in range(count))][:count]
            for vectors in (rng.normal(size=(count, dim)), np.round(4 * rng.normal(size=(count, dim)))):
                space = Embeddings(words, vectors.astype(np.float32))
                made += [_saved(space, Path(folder) / name) for name in _VECTOR_FILES]
                made.append(_foreign_npz(space))
        pairs = tuple((f"src{i % 7}", f"tgt{i}") for i in range(20))
        for name in ("x.txt", "x.tsv", "x.csv", "x.csv.gz"):
            path = Path(folder) / name
            Lexicon(pairs).save(path)
            made.append(Sample(name, path.read_bytes(), pairs=pairs))
    return tuple(made)


_OPTIONAL = {"x.parquet": "pyarrow", "x.arrow": "pyarrow", "x.faiss": "faiss", "x.duckdb": "duckdb"}
_VECTOR_FILES = (
    *("x.vec", "x.vec.gz", "x.glove", "x.glove.gz", "x.bin", "x.bin.gz", "x.npz", "x.safetensors", "x.fasttext"),
    *("x.npy", "x.db"),
    *(name for name, needed in _OPTIONAL.items() if find_spec(needed)),
)
_SIDECARS = {"x.safetensors": "x.json", "x.npy": "x.words.txt", "x.faiss": "x.faiss.words.txt"}
"""Files with the words of formats that have none."""
_ISOLATED = frozenset(("x.db", *_OPTIONAL))
_ISOLATED_SHARE = 0.05


def _saved(space: Embeddings, path: Path) -> Sample:
    # Some formats refuse some of these words.
    words = [re.sub("[\n\r\0]", "_", word) for word in space.words] if path.name in _SIDECARS else space.words
    space = Embeddings(words, space.vectors)
    io.save(space, path)
    sidecar = _SIDECARS.get(path.name)
    content = path.read_bytes()
    return Sample(path.name, content, None if sidecar is None else path.with_name(sidecar).read_bytes(), space)


def _foreign_npz(space: Embeddings) -> Sample:
    """Return an archive as NumPy writes it: compressed, in Fortran order, words as bytes."""
    file = bytes_io.BytesIO()
    words = np.array([word.encode() for word in space.words])
    np.savez_compressed(file, words=words, vectors=np.asfortranarray(space.vectors.astype(np.float64)))
    return Sample("x.npz", file.getvalue(), None, space)


# ------------------------------------------------------------------------------------------------------- mutations

_TOKENS: tuple[bytes, ...] = (
    *b"nan inf -inf 1e999 1e-999 -0 1_0 0x1f + .. 1e 0 -1 65536 1000000000 2147483648 4294967296".split(),
    *b"18446744073709551615 99999999999999999999 \" ' { [ ] } : , \\ \\ud800 \\u0000 True words.npy".split(),
    *b"\xff \xfe \xef\xbb\xbf \xed\xa0\x80 \xc3 \xf4\x90\x80\x80 \x85 \x1f\x8b\x08".split(b" "),
    *b"PK\x03\x04 PK\x01\x02 PK\x05\x06".split(b" "),
    *(b"\x93NUMPY", b"descr", b"'|O'", b"'<U99999999'", b"cos\nsystem\n", b"cbuiltins\neval\n"),
    *(b"\x96\xff\xff\xff\xff\xff\xff\xff\x00", b"\x8e\xff\xff\xff\xff\xff\xff\xff\x00"),
    *(b"\0", b"\n", b"\r", b"\r\n", b"\t", b" ", b"  ", b"a 1 2\n", b"1 1\n", b"9 9\n"),
    *(b"1" * 600, b"(" * 50, b"[" * 2000, b"x" * 70000, b" " * 5000, b"1 " * 3000, b"\n" * 3000),
)


def _offset(rng: Rng, data: bytes) -> int:
    # The beginning and the end matter most.
    return rng.choice(
        (rng.randint(0, len(data)), rng.randint(0, min(64, len(data))), len(data) - rng.randint(0, min(64, len(data))))
    )


def _flip(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[min(_offset(rng, data), len(changed) - 1)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(rng: Rng, data: bytes) -> bytes:
    begin = _offset(rng, data)
    some = bytes([rng.choice((0, 255, 32, 10, 48, rng.randrange(256)))]) * rng.choice((1, 2, 4, 8))
    return data[:begin] + some + data[begin + len(some) :]


def _insert(rng: Rng, data: bytes) -> bytes:
    begin = _offset(rng, data)
    return data[:begin] + rng.choice(_TOKENS) + data[begin:]


def _delete(rng: Rng, data: bytes) -> bytes:
    begin = _offset(rng, data)
    return data[:begin] + data[begin + rng.choice((1, 2, 8, 100)) :]


def _repeat(rng: Rng, data: bytes) -> bytes:
    begin = _offset(rng, data)
    piece = data[begin : begin + rng.choice((1, 8, 64, 1000))]
    return data[:begin] + piece * rng.choice((2, 3, 50)) + data[begin + len(piece) :]


def _swap(rng: Rng, data: bytes) -> bytes:
    first, second = sorted((_offset(rng, data), _offset(rng, data)))
    return data[second:] + data[first:second] + data[:first]


def _number(rng: Rng, data: bytes) -> bytes:
    """Replace a number in digits: in a header, a shape or a vector."""
    found = list(re.finditer(rb"[0-9]+", data[:4000]))
    if not found:
        return data
    match = rng.choice(found[: rng.choice((3, len(found)))])
    return data[: match.start()] + rng.choice(_TOKENS) + data[match.end() :]


def _field(rng: Rng, data: bytes) -> bytes:
    """Replace a field of a binary header: sizes, offsets, methods and flags of zip, lengths of safetensors."""
    marks = [match.start() for match in re.finditer(rb"PK[\x01\x03\x05\x06][\x02\x04\x06\x07]", data)] or [0]
    begin = rng.choice(marks) + rng.randrange(46)
    kind = rng.choice(("<H", "<I", "<Q"))
    value = rng.choice((0, 1, 2, 8, 12, 14, 99, 255, 65535, len(data), 2**31, 2**32 - 1, 2**63, 2**64 - 1))
    packed = struct.pack(kind, value % 256 ** struct.calcsize(kind))
    return data[:begin] + packed + data[begin + len(packed) :]


_MUTATIONS: dict[str, Mutation] = {
    "flip": _flip,
    "overwrite": _overwrite,
    "insert": _insert,
    "delete": _delete,
    "repeat": _repeat,
    "swap": _swap,
    "number": _number,
    "field": _field,
}


def _cut(rng: Rng, data: bytes) -> bytes:
    return data[: rng.choice((rng.randint(0, len(data)), max(0, len(data) - rng.randint(0, 40))))]


def _continued(rng: Rng, data: bytes) -> bytes:
    return data + rng.choice((rng.choice(_TOKENS), rng.randbytes(rng.choice((1, 10, 300)))))


def _rezipped(rng: Rng, data: bytes) -> bytes:
    """Change, repeat, remove, rename or repack one member of a zip archive."""
    try:
        with zipfile.ZipFile(bytes_io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # damaged by an earlier step
        members = []
    if not members:
        return data
    index = rng.randrange(len(members))
    name, content = members[index]
    what = rng.randrange(5)
    if what == 0:
        members.append((name, _MUTATIONS[rng.choice(tuple(_MUTATIONS))](rng, content)))
    elif what == 1:
        del members[index]
    elif what == 2:
        members[index] = (rng.choice(("other.npy", "words.npy", "vectors.npy", "", "words.npy\0x")), content)
    else:
        members[index] = (name, _MUTATIONS[rng.choice(tuple(_MUTATIONS))](rng, content))
    file = bytes_io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(file, "w", method) as archive, _quiet_duplicates():
        for each, some in members:
            archive.writestr(zipfile.ZipInfo(each or "x"), some, method)
    return file.getvalue()


@contextmanager
def _quiet_duplicates() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _retitled(rng: Rng, data: bytes) -> bytes:
    """Change the header of a safetensors file and correct its length."""
    length = struct.unpack("<Q", data[:8])[0] if len(data) > 8 else 0
    header, body = data[8 : 8 + length], data[8 + length :]
    for _ in range(rng.choice((1, 2))):
        header = rng.choice((_insert, _number, _delete, _repeat, _nested, _other_value, _other_value))(rng, header)
    return struct.pack("<Q", len(header)) + header + body


def _nested(rng: Rng, data: bytes) -> bytes:
    begin = _offset(rng, data)
    deep = rng.choice((10, 500, 3000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"-", b"")))
    return data[:begin] + opening * deep + b"1" + closing * deep + data[begin:]


_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**40, 10**25, "", "F32", "BF16", [], [[]], [1, 2, 3], {}, {"a": 1}, "\ud800"),
)


def _other_value(rng: Rng, data: bytes) -> bytes:
    """Replace one value of a JSON text."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return data
    node = content
    while isinstance(node, (dict, list)) and node:
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = rng.choice(keys)
        if not (isinstance(node[key], (dict, list)) and node[key]) or rng.random() < 0.3:
            node[key] = rng.choice(_VALUES)
            break
        node = node[key]
    return json.dumps(content).encode()


def make(seed: int, number: int, valid: Sequence[Sample]) -> Case:
    """Return the damaged file of a case."""
    rng = Rng(f"{seed} {number}")
    # Reading in a child process takes a hundred times as long.
    isolated = rng.random() < _ISOLATED_SHARE
    sample = rng.choice([sample for sample in valid if (sample.name in _ISOLATED) == isolated])
    case = Case(sample, sample.content, sample.sidecar)
    if rng.random() < 0.2:
        case.steps.append(rng.choice(("cut", "continued")))
        case.content = (_cut if case.steps[0] == "cut" else _continued)(rng, case.content)
        return case
    packed = sample.name.endswith(".gz") and rng.random() < 0.6
    content = gzip.decompress(case.content) if packed else case.content
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        content = _step(rng, case, content)
    case.content = gzip.compress(content, 1) if packed else content
    return case


def _step(rng: Rng, case: Case, content: bytes) -> bytes:
    """Change the content or the sidecar of words once more."""
    if case.sidecar is not None and rng.random() < 0.4:
        name = rng.choice((*_MUTATIONS, "nested", "value", "value"))
        case.steps.append(f"sidecar:{name}")
        case.sidecar = {**_MUTATIONS, "nested": _nested, "value": _other_value}[name](rng, case.sidecar)
        return content
    special = {"x.npz": ("rezipped", _rezipped), "x.safetensors": ("retitled", _retitled)}.get(case.sample.name)
    if special is not None and rng.random() < 0.5:
        case.steps.append(special[0])
        return special[1](rng, content)
    name = rng.choice(tuple(_MUTATIONS))
    case.steps.append(name)
    return _MUTATIONS[name](rng, content)


# --------------------------------------------------------------------------------------------------------- checking


class Fuzzer:
    """Writes cases to a folder, reads them and judges the results."""

    def __init__(self, seed: int, folder: Path, seconds: float = SECONDS) -> None:
        self.seed = seed
        self._seconds = seconds
        self._folder = folder
        self._valid = samples()
        self._open_files = _open_files()

    def run(self, number: int) -> Finding | None:
        """Run a case."""
        case = make(self.seed, number, self._valid)
        rng = Rng(f"{self.seed} {number} how")
        path = self._folder / case.sample.name
        path.write_bytes(case.content)
        if case.sidecar is not None:
            (self._folder / _SIDECARS[case.sample.name]).write_bytes(case.sidecar)
        try:
            with _alarm(self._seconds):
                problem = _read_pairs(path, case, rng) if case.sample.space is None else _read_space(path, case, rng)
        except QwpError as error:
            problem = "a lack of memory became a QwpError" if _lacked_memory(error) else None
        except (Exception, TooSlowError) as error:
            return Finding(number, f"{type(error).__name__} from {case.sample.name}", traceback.format_exc())
        problem = problem or ("a file is still open" if _open_files() > self._open_files else None)
        return Finding(number, f"{problem} ({case.sample.name}, {', '.join(case.steps)})") if problem else None


def _open_files() -> int:
    """Return the number of open files of this process; 0 if the system does not report it."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _read_pairs(path: Path, case: Case, rng: Rng) -> str | None:
    found = Lexicon.load(path, format=rng.choice(("auto", "auto", "muse", "xling", "csv")))
    complete = [pair for pair in found.pairs if pair in case.sample.pairs]
    if case.steps == ["continued"] and case.sample.name != "x.csv.gz" and found.skipped == 0 and len(complete) < 10:
        return "pairs were lost"
    return None


def _read_space(path: Path, case: Case, rng: Rng) -> str | None:
    if rng.random() < 0.1:
        io.sniff(path)
    isolated = case.sample.name in _ISOLATED
    formats = [format for format in io.FORMATS if isolated or format not in LIBRARIES]
    options: dict[str, Any] = {
        "errors": rng.choice(("raise", "raise", "skip")),
        "max_vocab": rng.choice((None, None, None, 1, 7, 1000)),
        # Half of the time the format is detected, otherwise it is given, usually wrongly.
        "format": rng.choice((*[None] * len(formats), *formats)),
        "dtype": rng.choice(("float32", "float32", "float64")),
    }
    found = io.load(path, **options)
    if case.only_cut_or_continued and options["format"] is None and (problem := _changed(found, case)):
        return problem
    if rng.random() < 0.25:
        return _differs_in_batches(path, found, options, rng.choice((1, 5, 1000)))
    return _differs_after_writing(path, found, rng) if rng.random() < 0.1 else None


def _changed(found: Embeddings, case: Case) -> str | None:
    """Return a problem if rows of a file that was only cut or continued have changed."""
    original = case.sample.space
    assert original is not None
    text = case.sample.name.startswith(("x.vec", "x.glove"))
    # A cut number is still a number, so the last line of a cut text cannot be judged.
    certain = len(found) - 1 if text and case.steps == ["cut"] else min(len(found), len(original))
    certain = min(certain, len(original))
    if certain == 0:
        return None
    same_words = found.words[:certain] == original.words[:certain]
    if same_words and np.array_equal(found.vectors[:certain].astype(np.float32), original.vectors[:certain]):
        return None
    return "undamaged rows have changed"


def _differs_in_batches(path: Path, found: Embeddings, options: dict[str, Any], size: int) -> str | None:
    batches = list(io.stream(path, batch=size, **options))
    words = [word for batch in batches for word in batch.words]
    vectors = np.concatenate([batch.vectors for batch in batches])
    same = words == found.words and vectors.tobytes() == found.vectors.tobytes()
    return None if same else "reading in batches gives another result"


def _differs_after_writing(path: Path, found: Embeddings, rng: Rng) -> str | None:
    target = path.with_name(
        "again" + rng.choice((".vec", ".glove", ".bin", ".npz", ".safetensors", ".vec.gz", ".npy", ".db"))
    )
    io.save(found, target)
    again = io.load(target)
    same = again.words == found.words and again.vectors.tobytes() == found.vectors.astype(np.float32).tobytes()
    return None if same else f"written as {target.name} and read again, it is different"


def _lacked_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def too_slow(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_cases(numbers: Iterable[int], seed: int, seconds: float = SECONDS) -> list[Finding]:
    """Run cases in this process without a limit of memory."""
    with _folder() as folder, _silence():
        fuzzer = Fuzzer(seed, folder, seconds)
        return [finding for number in numbers if (finding := fuzzer.run(number)) is not None]


@contextmanager
def _silence() -> Iterator[None]:
    """Silence the log, because thousands of damaged files cause as many warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="qwp-fuzz-", dir=place) as name:
        yield Path(name)


# ---------------------------------------------------------------------------------------------------------- workers


def _limit_memory() -> None:
    """Limit the address space of this process, if the system reports its current size."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        now = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))


def _work(numbers: range, seed: int, at: Synchronized[int], report: str) -> None:
    """Run cases in a worker and write the findings to a file, so that they survive the worker."""
    with _silence(), _folder() as folder, open(report, "a", encoding="utf-8") as file:
        fuzzer = Fuzzer(seed, folder)
        run_cases([0], seed)  # starts threads and allocates buffers before the limit is set
        _limit_memory()
        for number in numbers:
            at.value = number
            if (finding := fuzzer.run(number)) is not None:
                file.write(json.dumps([finding.case, finding.what, finding.detail]) + "\n")
                file.flush()


@dataclass(frozen=True)
class _Worker:
    """A process and its current case."""

    process: SpawnProcess
    at: Synchronized[int]

    def died(self) -> bool:
        """Wait for its end. Returns whether it failed."""
        self.process.join()
        return self.process.exitcode != 0


def _supervise(numbers: range, seed: int, report: Path) -> _Worker:
    """Start a worker with these cases."""
    context = multiprocessing.get_context("spawn")
    at = context.Value("q", numbers[0])
    process = context.Process(target=_work, args=(numbers, seed, at, str(report)))
    process.start()
    return _Worker(process, at)


def run_workers(cases: int, seed: int, workers: int) -> list[Finding]:
    """Run cases 0 to cases - 1 in workers with bounded memory; the death of a worker is a finding."""
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="qwp-fuzz-") as name:
        reports = [Path(name) / str(worker) for worker in range(workers)]
        shares = [range(worker, cases, workers) for worker in range(workers)]
        running = [_supervise(share, seed, report) for share, report in zip(shares, reports, strict=True) if share]
        for worker, report in zip(running, reports, strict=False):
            while worker.died():
                findings.append(Finding(worker.at.value, f"the worker died with code {worker.process.exitcode}"))
                rest = range(worker.at.value + workers, cases, workers)
                if not rest or len(findings) > _MAX_DEATHS:
                    break
                worker = _supervise(rest, seed, report)
        for report in reports:
            if report.exists():
                findings += [Finding(*json.loads(line)) for line in report.read_text(encoding="utf-8").splitlines()]
    return sorted(findings, key=lambda finding: finding.case)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.files", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, metavar="CASE", help="run one case and show where it fails")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    if options.only is not None:
        case = make(options.seed, options.only, samples())
        print(f"case {options.only}: {case.sample.name}, {', '.join(case.steps)}, {len(case.content)} bytes")
        findings = run_cases([options.only], options.seed)
    else:
        findings = run_workers(options.cases, options.seed, max(1, options.workers))
    for finding in findings[: None if options.only is not None else _SHOWN]:
        print(f"case {finding.case}: {finding.what}\n{finding.detail}".rstrip())
        print(f"  again: python -m fuzz.files --seed {options.seed} --only {finding.case}")
    done = 1 if options.only is not None else options.cases
    print(f"{done:,} cases, seed {options.seed}, {len(findings)} findings, {time.perf_counter() - begin:.0f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
