from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import formats, load, open_writer, save, sniff, stream
from qwp.spaces.io import text as text_files
from qwp.spaces.io.reading import Reading, collect, drop_duplicates, limit_rows
from qwp.spaces.io.sources import check_file, explain_failures, open_source
from qwp.spaces.io.writing import Target
from qwp.spaces.lexicon import Lexicon
from qwp.spaces.limits import UnpackLimits

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")


def text(n: int = 5000) -> bytes:
    return b"%d 2\n" % n + b"".join(b"w%d %d 0.5\n" % (i, i) for i in range(n))


@contextmanager
def piped(path: Path, content: bytes, *, wait: float = 0.0) -> Iterator[Path]:
    """Create a named pipe that gives this content to its first reader."""
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            time.sleep(wait)
            for begin in range(0, len(content), 7000):
                pipe.write(content[begin : begin + 7000])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    yield path
    writer.join(10)
    assert not writer.is_alive()


def test_all_words_of_a_pipe_are_read(tmp_path: Path) -> None:
    (tmp_path / "file.vec").write_bytes(text())
    expected = load(tmp_path / "file.vec")
    with piped(tmp_path / "pipe.vec", text()) as pipe:
        found = load(pipe)
    assert found.sha256() == expected.sha256()
    assert found.report is not None
    assert (found.report.path, found.report.complete) == (str(tmp_path / "pipe.vec"), True)
    assert found.report.warnings == ()


@pytest.mark.parametrize("compress", [False, True])
def test_streams_and_prefixes_of_a_pipe(tmp_path: Path, compress: bool) -> None:
    content = gzip.compress(text()) if compress else text()
    with piped(tmp_path / "a", content) as pipe:
        assert sum(len(batch) for batch in stream(pipe, batch=77)) == 5000
    with piped(tmp_path / "b", content) as pipe:
        found = load(pipe, max_vocab=3)
    assert found.words == ["w0", "w1", "w2"]
    assert found.report is not None
    assert found.report.complete is False
    with piped(tmp_path / "c", content) as pipe:
        assert sniff(pipe) == "text"


def test_archives_and_dictionaries_through_a_pipe(tmp_path: Path) -> None:
    save(Embeddings(["a", "b"], np.eye(2)), tmp_path / "x.npz")
    with piped(tmp_path / "pipe", (tmp_path / "x.npz").read_bytes()) as pipe:
        assert load(pipe).words == ["a", "b"]
    with piped(tmp_path / "pairs", b"".join(b"s%d t%d\n" % (i, i) for i in range(9000))) as pipe:
        assert len(Lexicon.load(pipe)) == 9000


def test_safetensors_through_a_pipe_is_explained(tmp_path: Path) -> None:
    save(Embeddings(["a", "b"], np.eye(2)), tmp_path / "x.safetensors")
    with (
        piped(tmp_path / "pipe", (tmp_path / "x.safetensors").read_bytes()) as pipe,
        pytest.raises(InputError, match="is a pipe, expected a file: the words"),
    ):
        load(pipe)


def test_an_anonymous_pipe(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"2 1\na 1\nb 2\n")
    os.close(writing)
    try:
        assert load(f"/dev/fd/{reading}").words == ["a", "b"]
    finally:
        os.close(reading)


def test_a_pipe_without_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    check_file(tmp_path / "pipe")  # accepts a pipe without waiting for it
    with pytest.raises(InputError, match=r"a pipe that no process opened for writing within 0\.05 seconds"):
        open_source(tmp_path / "pipe", patience=0.05)


def test_slow_writers_are_waited_for(tmp_path: Path) -> None:
    with piped(tmp_path / "pipe", b"1 1\na 1\n", wait=0.3) as pipe:
        time.sleep(0.05)
        with open_source(pipe, patience=0.05) as source:
            assert source.head == b"1 1\na 1\n"


def test_an_empty_pipe(tmp_path: Path) -> None:
    with piped(tmp_path / "pipe", b"") as pipe, pytest.raises(InputError, match=r"is empty \(0 bytes\)"):
        load(pipe)


def test_a_pipe_that_does_not_fit_on_the_disk(tmp_path: Path) -> None:
    with (
        piped(tmp_path / "pipe", b"1 1\na 1\n") as pipe,
        pytest.raises(InputError, match=r"does not fit into .* TMPDIR"),
    ):
        open_source(pipe, reserved=1 << 60)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_devices_are_refused(device: str) -> None:
    for read in (load, sniff, Lexicon.load):
        with pytest.raises(InputError, match=r"is a device .*, expected a file or a pipe"):
            read(device)
    with pytest.raises(InputError, match="is a device"):
        check_file(Path(device))


@needs_proc
def test_files_of_proc_have_content_and_no_size() -> None:
    with open_source(Path("/proc/self/status")) as source:
        assert source.head.startswith(b"Name:")
        assert source.size == len(source.head)


def test_a_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.vec").write_bytes(text(20))
    (tmp_path / "x.txt").write_bytes(b"a b\n")
    count = 0
    real = os.open

    def counted(*args: object, **options: object) -> int:
        nonlocal count
        count += 1
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", counted)
    load(tmp_path / "x.vec")
    assert count == 1
    Lexicon.load(tmp_path / "x.txt")
    assert count == 2


@needs_proc
def test_files_are_closed(tmp_path: Path) -> None:
    (tmp_path / "x.vec").write_bytes(text(2000))
    (tmp_path / "bad.vec").write_bytes(b"nothing\n")
    before = len(os.listdir("/proc/self/fd"))
    load(tmp_path / "x.vec")
    load(tmp_path / "x.vec", max_vocab=1)
    stream(tmp_path / "x.vec")  # never started
    next(stream(tmp_path / "x.vec", batch=1))  # abandoned
    for read in (load, stream, sniff):
        with pytest.raises(InputError):
            read(tmp_path / "bad.vec")
    assert len(os.listdir("/proc/self/fd")) == before


def test_gzip_is_detected_from_the_content(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"hello") + gzip.compress(b" world"))
    with open_source(path) as source, source.plain() as handle:
        assert handle.read(5) + handle.read(100) == b"hello world"
    with open_source(path) as source:
        assert source.head == b"hello world"


def test_truncated_gzip_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 50)[:-20])
    with open_source(path) as source, pytest.raises(InputError, match="damaged or truncated gzip"):
        assert source.head


def read_with(limits: UnpackLimits, path: Path, **options: Any) -> Embeddings:
    """Load a text or npz file under other limits."""
    with open_source(path, limits=limits) as source:
        name = formats.detect(source)
        reading = Reading(path, name, np.dtype(np.float32), size=source.size, max_rows=source.max_rows, **options)
        rows = formats.by_name(name).read(reading, source)
        return collect(drop_duplicates(limit_rows(rows, reading), reading), reading)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    line = b"a" + b" 0" * 300 + b"\n"
    path = tmp_path / "x.vec.gz"
    path.write_bytes(gzip.compress(b"100000 300\n" + line * 3000))
    assert path.stat().st_size < 20_000
    limits = UnpackLimits(free_bytes=1 << 20)
    with pytest.raises(InputError, match="a file made to exhaust memory; if you trust it, unpack it yourself"):
        read_with(limits, path)
    assert read_with(limits, path, max_vocab=1).words == ["a"]
    lexicon = tmp_path / "x.txt.gz"
    lexicon.write_bytes(gzip.compress((b"house\tcasa" + b" " * 60_000 + b"\n") * 1200))
    with pytest.raises(InputError, match="looks like a file made to exhaust memory"):
        Lexicon.load(lexicon)


def test_too_many_rows_for_a_compressed_file(tmp_path: Path) -> None:
    limits = UnpackLimits(free_rows=100)
    rows = b"".join(b"%03d 0\n" % i for i in range(900))
    (tmp_path / "x.vec.gz").write_bytes(gzip.compress(b"900 1\n" + rows))
    with pytest.raises(InputError, match="looks like a file made to exhaust memory"):
        read_with(limits, tmp_path / "x.vec.gz")
    target = Target(tmp_path / "y.vec.gz", "text", 1, compress=True, limits=limits)
    with pytest.raises(InputError, match="which its reader refuses"), text_files.open_text(target) as writer:
        writer.write([f"{i:03d}" for i in range(900)], np.zeros((900, 1)))
    assert not (tmp_path / "y.vec.gz").exists()


def test_files_that_readers_refuse_are_not_written(tmp_path: Path) -> None:
    limits = UnpackLimits(free_bytes=1000)
    for name, suffix in (("text", ".vec"), ("glove", ".glove"), ("word2vec-binary", ".bin")):
        target = Target(tmp_path / f"x{suffix}.gz", name, 500, compress=True, limits=limits)
        with pytest.raises(InputError, match="uncompressed"), formats.by_name(name).open_rows(target) as writer:
            writer.write([f"w{i}" for i in range(500)], np.zeros((500, 500)))
    words = ["a" * 5000 + str(i) for i in range(100)]
    with (
        pytest.raises(InputError, match=r"not as \.npz"),
        formats.by_name("npz").open_rows(Target(tmp_path / "x.npz", "npz", 1, limits=limits)) as writer,
    ):
        writer.write(words, np.ones((100, 1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("path", "message"), [(None, "NoneType"), (5, "int"), (1.5, "float"), ([], "list")])
def test_other_objects_are_not_paths(path: object, message: str) -> None:
    for read in (load, stream, sniff, Lexicon.load, Lexicon((("a", "b"),)).save):
        with pytest.raises(InputError, match=rf"received .* \({message}\) as a path, expected the name of a file"):
            read(path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="as a path"):
        save(Embeddings(["a"], np.ones((1, 1))), path)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="as a path"):
        open_writer(path, 1)  # type: ignore[arg-type]


def test_invalid_names_are_refused(tmp_path: Path) -> None:
    for name, message in (
        ("", "empty path"),
        ("a\0b", "without NUL"),
        ("x" * 5000, "cannot be"),
        ("a/b\ud800", "not a valid file name"),
    ):
        with pytest.raises(InputError, match=message):
            load(name)
        with pytest.raises(InputError, match=message):
            save(Embeddings(["a"], np.ones((1, 1))), name + ".vec" if name else name)


def test_names_can_be_bytes(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path / "x.vec")
    save(Embeddings(["a"], np.ones((1, 1))), name)  # type: ignore[arg-type]
    assert load(name).words == ["a"]  # type: ignore[arg-type]


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.vec"
    path.write_bytes(text(3))
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    for read in (load, check_file):
        with pytest.raises(InputError, match="cannot be read"):
            read(path)


def test_disk_errors_are_explained(tmp_path: Path) -> None:
    message = r"x\.vec cannot be read \(Input/output error\)"
    with pytest.raises(InputError, match=message), explain_failures(tmp_path / "x.vec", "words"):
        raise OSError(5, "Input/output error")
    with pytest.raises(InputError, match="does not fit into memory"), explain_failures(tmp_path / "x.vec", "words"):
        raise MemoryError
