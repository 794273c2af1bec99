from __future__ import annotations

import gzip
import json
import struct
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import FORMATS, load, open_writer, save, sniff, stream

OWN = {
    "x.vec": "text",
    "x.vec.gz": "text",
    "x.glove": "glove",
    "x.bin": "word2vec-binary",
    "x.fasttext": "fasttext",
    "x.npz": "npz",
    "x.safetensors": "safetensors",
    "x.npy": "npy",
}
"""Files that are read by this program; a child process reads the others. Databases of DuckDB are slow to write:
tests/spaces/foreign has them."""
ISOLATED = {
    "x.db": "sqlite",
    **({"x.parquet": "parquet", "x.arrow": "arrow"} if find_spec("pyarrow") else {}),
    **({"x.faiss": "faiss"} if find_spec("faiss") else {}),
}
NAMES = OWN | ISOLATED


def sample(n: int = 40, dim: int = 8) -> Embeddings:
    vectors = np.random.default_rng(0).normal(size=(n, dim)).astype(np.float32)
    return Embeddings([f"wörd{i}" for i in range(n)], vectors)


@pytest.mark.parametrize("name", NAMES)
def test_sniff_ignores_the_file_name(tmp_path: Path, name: str) -> None:
    save(sample(), tmp_path / name)
    assert sniff(tmp_path / name) == NAMES[name]
    # Formats with a sidecar need their file name to find it.
    if name in OWN and OWN[name] not in ("safetensors", "npy"):
        (tmp_path / name).rename(tmp_path / "unnamed")
        assert sniff(tmp_path / "unnamed") == NAMES[name]
        assert load(tmp_path / "unnamed").sha256() == sample().sha256()


@pytest.mark.parametrize("name", OWN)
def test_max_vocab_in_every_format(tmp_path: Path, name: str) -> None:
    original = sample()
    save(original, tmp_path / name)
    cut = load(tmp_path / name, max_vocab=17)
    assert cut.sha256() == original.head(17).sha256()
    assert cut.report is not None
    assert cut.report.complete is False


@pytest.mark.parametrize("name", NAMES)
def test_stream_in_every_format(tmp_path: Path, name: str) -> None:
    original = sample()
    save(original, tmp_path / name)
    batches = list(stream(tmp_path / name, batch=7, max_vocab=17))
    assert [len(batch) for batch in batches] == [7, 7, 3]
    assert [w for batch in batches for w in batch.words] == original.words[:17]
    assert np.array_equal(np.concatenate([batch.vectors for batch in batches]), original.vectors[:17])


@pytest.mark.parametrize("name", OWN)
def test_writing_in_batches_is_deterministic(tmp_path: Path, name: str) -> None:
    original = sample()
    with open_writer(tmp_path / name, original.dim) as writer:
        for begin in range(0, 40, 9):
            writer.write(original.words[begin : begin + 9], original.vectors[begin : begin + 9])
    found = load(tmp_path / name)
    assert found.sha256() == original.sha256()
    assert found.report is not None
    assert found.report.warnings == ()
    save(original, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    save(original, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("name", NAMES)
def test_writers_leave_nothing_after_an_exception(tmp_path: Path, name: str) -> None:
    def interrupted(error: type[BaseException]) -> None:
        with open_writer(tmp_path / name, 8) as writer:
            writer.write(sample().words, sample().vectors)
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            interrupted(error)
        assert list(tmp_path.iterdir()) == []


def test_a_wrong_count_is_refused(tmp_path: Path) -> None:
    for name in ("x.vec", "x.npz"):
        with (
            pytest.raises(InputError, match=r"1 words were written .* expected count=2"),
            open_writer(tmp_path / name, 1, count=2) as writer,
        ):
            writer.write(["a"], np.ones((1, 1)))
    with pytest.raises(InputError, match="no word was written"), open_writer(tmp_path / "x.vec", 1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_invalid_rows_are_refused(tmp_path: Path) -> None:
    for words, vectors, message in (
        (["a"], np.ones((1, 3)), r"shape \(1, 3\), expected shape \(1, 2\)"),
        (["a", "b"], np.ones((1, 2)), r"received 2 words and vectors of shape \(1, 2\)"),
        (["a", "b"], np.array([[1, 1], [np.nan, 1]]), "vector of 'b' .* not finite"),
        (["a"], np.array([[1e39, 1]]), "not finite as float32"),
    ):
        with pytest.raises(InputError, match=message), open_writer(tmp_path / "x.vec", 2) as writer:
            writer.write(words, vectors)


def test_fasttext_models_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(struct.pack("<ii", 793712314, 12) + bytes(100))
    with pytest.raises(InputError, match="is a damaged fastText model"):
        load(path)


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00 0.5 1\n"


@pytest.mark.parametrize(
    "content",
    [PNG, b"\0" * 50, b"just some words\nand more of them\n", b"\n\n", b'{"words": []}', b"\xff\xfe1\0"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.vec"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected a vector file"):
        sniff(path)
    path.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match="expected a vector file"):
        load(path)


def test_missing_empty_and_directory(tmp_path: Path) -> None:
    (tmp_path / "empty.vec").touch()
    for name, message in (("no.vec", "does not exist"), (".", "is a directory"), ("empty.vec", "is empty")):
        with pytest.raises(InputError, match=message):
            load(tmp_path / name)


def test_text_with_a_header_is_distinguished_from_binary(tmp_path: Path) -> None:
    path = tmp_path / "x"
    zeros = np.zeros(4, dtype="<f4").tobytes()
    for content, expected in (
        (b"1 4\nw " + zeros, "word2vec-binary"),
        (b"2 2\nnew york 1 2\nb 1 2\n", "text"),
        (b"2 5\na 1 2\nb 1 2\n", "text"),
        (b"1 2\ncaf\xe9 1 2\n", "text"),
        (b"1 3\ngarbage without numbers\n", "text"),
    ):
        path.write_bytes(content)
        assert sniff(path) == expected


def test_very_long_lines_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" + b" 0.1234567e-1" * 20_000 + b"\n")
    assert sniff(path) == "glove"
    assert load(path).dim == 20_000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.foo", {}, r"'\.foo', expected one of \.vec/\.txt \(text\)"),
        ("x", {}, "no suffix"),
        ("x.npz.gz", {}, "asks for gzip, which npz does not use"),
        ("x.vec", {"format": "nope"}, "received format='nope', expected one of text, glove"),
        ("x.npz", {"digits": 4}, "received digits=4 for npz"),
        ("x.vec", {"digits": 13}, "received digits=13, expected 0 to 12"),
        ("no/x.vec", {}, "folder .* does not exist"),
    ],
)
def test_invalid_targets_are_refused(tmp_path: Path, name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        save(sample(), tmp_path / name, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_vocab": 0}, "max_vocab=0"),
        ({"errors": "ignore"}, "errors='ignore', expected 'raise' or 'skip'"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"format": "bin"}, "format='bin'"),
    ],
)
def test_invalid_options_are_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    save(sample(), tmp_path / "x.vec")
    with pytest.raises(InputError, match=message):
        load(tmp_path / "x.vec", **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch=0"):
        stream(tmp_path / "x.vec", batch=0)


def test_format_overrides_the_suffix(tmp_path: Path) -> None:
    save(sample(), tmp_path / "x.vec", format="word2vec-binary")
    assert sniff(tmp_path / "x.vec") == "word2vec-binary"
    assert set(NAMES.values()) | {"duckdb", "faiss", "parquet", "arrow"} == set(FORMATS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_vocab": "10"}, r"received max_vocab='10' \(str\), expected a whole number, at least 1"),
        ({"max_vocab": True}, r"received max_vocab=True \(bool\)"),
        ({"max_vocab": -1}, "received max_vocab=-1, expected at least 1"),
        ({"format": 3}, "received format=3, expected one of text, glove"),
        ({"errors": None}, "received errors=None, expected 'raise' or 'skip'"),
        ({"dtype": "complex"}, "received dtype='complex', expected one of float32, float64"),
        ({"dtype": "f4,f4"}, "received dtype='f4,f4'"),
        ({"dtype": ">f4"}, "received dtype='>f4'"),
    ],
)
def test_options_of_a_wrong_type_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    save(sample(), tmp_path / "x.vec")
    for read in (load, stream):
        with pytest.raises(InputError, match=f"^{message}") as caught:
            read(tmp_path / "x.vec", **options)
        assert "\n" not in str(caught.value)


def test_dtypes_by_any_name(tmp_path: Path) -> None:
    save(sample(), tmp_path / "x.vec")
    for dtype in ("float64", "f8", np.float64, np.dtype("float64"), float):
        assert load(tmp_path / "x.vec", dtype=dtype).vectors.dtype == np.float64  # type: ignore[arg-type]
    assert len(load(tmp_path / "x.vec", max_vocab=np.int64(3))) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "received dim=0"),
        ({"dim": 1.5}, r"received dim=1\.5"),
        ({"dim": 1 << 20}, "received dim=1048576, expected 1 to 262144"),
        ({"count": "3"}, "received count='3'"),
        ({"count": 0}, "received count=0"),
        ({"digits": True}, "received digits=True"),
        ({"format": 7}, "received format=7"),
    ],
)
def test_writer_options_of_a_wrong_type_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_writer(tmp_path / "x.vec", **{"dim": 2, **options})
    for batch in ("4", 0, True, None):
        with pytest.raises(InputError, match="received batch="):
            stream(tmp_path / "x.vec", batch=batch)  # type: ignore[arg-type]


def test_rows_of_a_wrong_type_are_refused(tmp_path: Path) -> None:
    for words, vectors, message in (
        ("ab", np.ones((2, 2)), "received words of str, expected a list of strings"),
        (["a", 5], np.ones((2, 2)), "expected a list of strings"),
        (["a"], np.ones((1, 2)) * 1j, "received vectors of type complex128"),
        (["a"], [["x", "y"]], "received vectors of type"),
        ([""], np.ones((1, 2)), "received the empty word"),
        (["a", "\ud800"], np.ones((2, 2)), "half of a surrogate pair"),
    ):
        with pytest.raises(InputError, match=message), open_writer(tmp_path / "x.vec", 2) as writer:
            writer.write(words, vectors)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="received dict, expected Embeddings"):
        save({"a": 1}, tmp_path / "x.vec")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


SECRET = b"hunter2 correct-horse"
KINDS = [
    (b"\x7fELF\x02" + SECRET, "a program"),
    (b'{"password": "' + SECRET + b'"}', "JSON"),
    (b"\n <HTML>" + SECRET, "a web page"),
    (b"-----BEGIN KEY-----\n" + SECRET, "a key or a certificate"),
    (b"root:x:" + SECRET + b":0\nbin:" + SECRET + b"\n", "text without a vector"),
    (b"\xe9t\xe9 " + SECRET, "binary data or text that is not UTF-8"),
]


@pytest.mark.parametrize(("content", "kind"), KINDS)
def test_messages_about_other_files_do_not_quote_them(tmp_path: Path, content: bytes, kind: str) -> None:
    """A path from a downloaded result may name any file, whose content must not leak into a message."""
    path = tmp_path / "x.vec"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"is {kind}.*, expected a vector file"):
        load(path)
    for format in (*OWN.values(), *(["sqlite"] if content is KINDS[0][0] else [])):
        for errors in ("raise", "skip"):
            with pytest.raises(InputError) as caught:
                load(path, format=format, errors=errors)
            assert "hunter2" not in str(caught.value)
            assert "horse" not in str(caught.value)


@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-32"])
def test_utf16_and_utf32_are_named(tmp_path: Path, name: str) -> None:
    text = "2 2\na 1 2\nb 3 4\n"
    content = text.encode(name) if name != "utf-16-le" else b"\xff\xfe" + text.encode(name)
    (tmp_path / "x.vec").write_bytes(content)
    for format in (None, "text", "glove"):
        with pytest.raises(InputError, match=r"is UTF-(16|32) text, expected .* UTF-8: convert it"):
            load(tmp_path / "x.vec", format=format)


@pytest.mark.parametrize(
    "content", [b"a 1 2\rb 3 4\r", b"2 2\ra 1 2\rb 3 4", b"2 2\na 1 2\rb 3 4\n", b"a 1 2\rb 3 4\n"]
)
def test_lines_ended_by_carriage_returns_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.vec").write_bytes(content)
    for format in (None, "text", "glove"):
        with pytest.raises(InputError, match="carriage returns alone"):
            load(tmp_path / "x.vec", format=format)


def test_a_byte_order_mark_is_not_part_of_the_first_word(tmp_path: Path) -> None:
    for content, format in ((b"\xef\xbb\xbfa 1 2\nb 3 4\n", "glove"), (b"\xef\xbb\xbf2 2\na 1 2\nb 3 4\n", "text")):
        (tmp_path / "x.vec").write_bytes(content)
        for named in (None, format):
            found = load(tmp_path / "x.vec", format=named)
            assert found.words == ["a", "b"]


def test_a_named_format_is_used(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"2 1\na 2\nb 3\n")
    assert load(path).report.format == "text"  # type: ignore[union-attr]
    found = load(path, format="glove")
    assert (found.words, found.vectors.ravel().tolist()) == (["2", "a", "b"], [1, 2, 3])
    assert [batch.words for batch in stream(path, format="glove")] == [["2", "a", "b"]]
    binary = load(path, format="word2vec-binary", errors="skip")
    assert binary.report is not None
    assert (binary.report.format, binary.words) == ("word2vec-binary", ["a", "b"][:1])
    for format in ("npz", "safetensors"):
        with pytest.raises(InputError, match="damaged"):
            load(path, format=format)


def test_the_first_line_is_a_header_or_a_word(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, expected in (
        (b"12 3\na 1\nb 2\n", "glove"),  # every line holds one number
        (b"2 3\na 1\nb 2\n", "text"),  # as many lines as the header says, with a wrong dimension
        (b"12 3\na 1\n", "text"),  # probably truncated
        (b"12 1\na 1\nb 2\n", "text"),
        (b"40 3\nthe -1.42", "text"),
        (b"12 3.0\na 1\nb 2\n", "glove"),
        (b"2 1\n12 1\n13 2\n", "text"),
        (b"1 1\n12 0.5\n", "text"),
        (b"1 1\n12 \0\0\0\0", "word2vec-binary"),
        (b"1 1\n12 \0\0\0\0\n", "word2vec-binary"),
        (b"2 1\n12    \0\n1 \0\0 1", "word2vec-binary"),
        (b"1 1\na \xff\xff\xff\xff", "word2vec-binary"),  # not finite: damaged, but not text
    ):
        path.write_bytes(content)
        assert sniff(path) == expected, content
    # The same for a large file, of which only the beginning is checked.
    many = b"".join(b"%06x 0\n" % i for i in range(30_000))
    for content, expected in ((b"5 7\n" + many, "glove"), (b"5 1\n" + many, "text"), (b"000000 0\n" + many, "glove")):
        path.write_bytes(content)
        assert sniff(path) == expected, content[:20]


def put_raw(path: Path, words: list[str], vectors: np.ndarray) -> None:
    """Write a file as ``save`` does, but without checks, so that vectors may hold any value."""
    format, (n, dim) = NAMES[path.name], vectors.shape
    if format == "npz":
        np.savez(path, words=np.array(words), vectors=vectors)
        return
    if format == "safetensors":
        save_file({"vectors": vectors}, path)
        path.with_suffix(".json").write_text(json.dumps({"words": words}))
        return
    rows = [
        word.encode()
        + b" "
        + (row.tobytes() if format == "word2vec-binary" else " ".join(map(str, row.tolist())).encode())
        for word, row in zip(words, vectors, strict=True)
    ]
    content = (b"" if format == "glove" else b"%d %d\n" % (n, dim)) + b"\n".join(rows) + b"\n"
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize("dim", [1, 50])
def test_damaged_text_is_not_detected_as_binary(tmp_path: Path, dim: int) -> None:
    """Damage in the first lines, or words in another encoding, could occur in binary records as well."""
    rng = np.random.default_rng(dim)
    lines = [b"w%d " % i + " ".join(f"{x:.4f}" for x in rng.normal(size=dim)).encode() for i in range(600)]
    for place in (0, 1, 20):
        damaged = [*lines[:place], b"caf\xe9 \x01 x", *lines[place:]]
        for some in (damaged, damaged[: place + 3]):
            (tmp_path / "x").write_bytes(b"%d %d\n" % (len(some), dim) + b"\n".join(some) + b"\n")
            assert sniff(tmp_path / "x") == "text"


@pytest.mark.parametrize("dim", [1, 50])
def test_damaged_binary_is_not_detected_as_text(tmp_path: Path, dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows = [b"w%d " % i + row.tobytes() for i, row in enumerate(rng.normal(size=(600, dim)).astype("<f4"))]
    for place in (0, 1, 20):
        for bad in (b"\xff " + rows[0][3:], b"x " + np.full(dim, np.nan, dtype="<f4").tobytes()):
            damaged = [*rows[:place], bad, *rows[place:]]
            for some in (damaged, damaged[: place + 3]):
                (tmp_path / "x").write_bytes(b"%d %d\n" % (len(some), dim) + b"\n".join(some) + b"\n")
                assert sniff(tmp_path / "x") == "word2vec-binary"


@pytest.mark.parametrize("name", ["x.vec", "x.glove", "x.bin", "x.npz", "x.safetensors"])
def test_damage_after_the_last_needed_word_is_ignored(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    vectors = sample().vectors.copy()
    vectors[20] = np.nan
    put_raw(path, sample().words, vectors)
    found = load(path, max_vocab=20)
    assert found.report is not None
    assert (len(found), found.report.complete, found.report.skipped) == (20, False, 0)
    with pytest.raises(InputError, match=r"2[12] .*of .* holds '?nan"):
        load(path, max_vocab=21)
    skipped = load(path, max_vocab=21, errors="skip").report
    assert skipped is not None
    assert (skipped.n_words, skipped.skipped, skipped.complete) == (21, 1, False)
    everything = load(path, max_vocab=39, errors="skip").report
    assert everything is not None
    assert (everything.n_words, everything.skipped, everything.complete) == (39, 1, True)


def test_many_repeated_words_before_the_last_needed_one(tmp_path: Path) -> None:
    """Rows are read in batches: one at a time would take minutes here."""
    words = np.array(["a"] * 10_000 + ["b", "c"])
    np.savez(tmp_path / "x.npz", words=words, vectors=np.arange(10_002.0)[:, None])
    lines = b"".join(b"%s %d\n" % (word.encode(), i) for i, word in enumerate(words.tolist()))
    (tmp_path / "x.glove").write_bytes(lines)
    for name in ("x.npz", "x.glove"):
        found = load(tmp_path / name, max_vocab=2)
        assert (found.words, found.vectors.ravel().tolist()) == (["a", "b"], [0, 10_000])
        assert found.report is not None
        assert (found.report.duplicates, found.report.complete) == (9_999, False)
