from __future__ import annotations

import gzip
import logging
import re
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, stream
from qwp.spaces.io import text as module
from qwp.spaces.io.numbers import trailing_numbers
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import open_source
from qwp.spaces.io.text import LineError, parse_block, parse_line
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

# --------------------------------------------------------------------------- files


def put(tmp_path: Path, content: str | bytes, name: str = "x.vec") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_header_and_trailing_blanks(tmp_path: Path) -> None:
    found = load(put(tmp_path, "2 3\nthe 0.1 0.2 0.3 \n</s> -1 2e-3 +3 \n"))
    assert found.words == ["the", "</s>"]
    assert found.vectors.dtype == np.float32
    assert np.array_equal(found.vectors, np.array([[0.1, 0.2, 0.3], [-1, 2e-3, 3]], dtype=np.float32))
    report = found.report
    assert report is not None
    assert report.to_dict() == {
        "path": str(tmp_path / "x.vec"),
        "format": "text",
        "n_words": 2,
        "dim": 3,
        "duplicates": 0,
        "skipped": 0,
        "skipped_lines": [],
        "header_count": 2,
        "complete": True,
        "zero_vectors": 0,
        "warnings": [],
        "errors": "raise",
        "encoding": "utf-8",
        "vocab_words": None,
        "vocab_path": None,
        "words_path": None,
        "label": None,
    }


def test_without_a_header(tmp_path: Path) -> None:
    found = load(put(tmp_path, ". . . 0.5 1\nthe 2 3\n"))
    assert found.words == [". . .", "the"]
    assert found.report is not None
    assert (found.report.format, found.report.header_count) == ("glove", None)


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    found = load(put(tmp_path, b"\xef\xbb\xbf2 2\r\na 1 2\r\nb 3 4\r\n"))
    assert found.words == ["a", "b"]
    assert found.vectors.tolist() == [[1, 2], [3, 4]]


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    words = ["a\u00a0b", "a\u0085b", "a\u2028b", "a\x0cb", "\u3000"]
    found = load(put(tmp_path, "5 1\n" + "".join(f"{word} 1\n" for word in words)))
    assert found.words == words


@pytest.mark.parametrize("end", ["\n", "\n\n", " \r\n\n \n"])
def test_blank_lines_at_the_end_are_ignored(tmp_path: Path, end: str) -> None:
    found = load(put(tmp_path, "2 1\na 1\nb 2" + end))
    assert found.words == ["a", "b"]
    assert found.report is not None
    assert found.report.warnings == ()


def test_the_first_of_repeated_words_is_loaded(tmp_path: Path) -> None:
    found = load(put(tmp_path, "5 1\na 1\nb 2\na 3\nb 4\nc 5\n"))
    assert found.words == ["a", "b", "c"]
    assert found.vectors.ravel().tolist() == [1, 2, 5]
    assert found.report is not None
    assert found.report.duplicates == 2
    assert found.report.warnings == ()


def test_zero_vectors_are_loaded_and_counted(tmp_path: Path) -> None:
    found = load(put(tmp_path, "2 2\na 0 -0.0\nb 0 1\n"))
    assert found.report is not None
    assert (len(found), found.report.zero_vectors) == (2, 1)


BAD = [
    ("b 1", "line 3 of {path} holds 1 numbers, expected 2"),
    ("b 1 2 3", "line 3 of {path} holds 3 numbers, expected 2"),
    ("b 1 x", "line 3 of {path} holds something else as number 2, expected a decimal number"),
    ("b nan 1", "line 3 of {path} holds 'nan' as number 1, expected a finite float32 number"),
    ("", "line 3 of {path} is empty, expected a word and 2 numbers"),
    (" 1 2", "line 3 of {path} starts with a blank, expected a word before the 2 numbers"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_damaged_lines(tmp_path: Path, line: str, message: str) -> None:
    path = put(tmp_path, f"3 2\na 1 2\n{line}\nc 3 4\n")
    with pytest.raises(InputError, match=re.escape(message.format(path=path))) as caught:
        load(path)
    assert 'errors="skip"' in str(caught.value)
    assert "--errors skip" in str(caught.value)
    found = load(path, errors="skip")
    assert found.words == ["a", "c"]
    assert found.report is not None
    assert found.report.skipped == 1
    assert found.report.skipped_lines == (message.format(path="@").replace(" of @ ", ": "),)
    assert found.report.warnings == ()


def test_broken_utf8(tmp_path: Path) -> None:
    path = put(tmp_path, b"2 1\nok 1\ncaf\xe9 2\n")
    with pytest.raises(InputError, match=r"line 3 of .* byte 0xe9 at position 3, expected UTF-8"):
        load(path)
    assert load(path, errors="skip").words == ["ok"]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_truncated_last_line(tmp_path: Path, end: str) -> None:
    path = put(tmp_path, "2 3\na 1 2 3\nb 1 2" + end)
    with pytest.raises(InputError, match=r"line 3 of .* holds 2 numbers, expected 3"):
        load(path)
    assert load(path, errors="skip").words == ["a"]


def test_twenty_damaged_lines_are_explained(tmp_path: Path) -> None:
    found = load(put(tmp_path, "31 1\na 1\n" + "b x\n" * 30), errors="skip")
    assert found.report is not None
    assert found.report.skipped == 30
    assert len(found.report.skipped_lines) == 20


def test_a_header_with_a_wrong_count(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = put(tmp_path, "999999999999 1\na 1\nb 2\n")
    with caplog.at_level(logging.WARNING, logger="qwp"):
        found = load(path)
    assert found.report is not None
    assert found.report.header_count == 999_999_999_999
    assert found.report.warnings == ("header says 999999999999 words, the file holds 2",)
    assert "the file holds 2" in caplog.text


def test_a_header_with_too_small_a_count(tmp_path: Path) -> None:
    rows = "".join(f"w{i} {i}.5\n" for i in range(500))
    found = load(put(tmp_path, "3 1\n" + rows))
    assert len(found) == 500
    assert found.vectors[499, 0] == 499.5
    assert found.report is not None
    assert found.report.warnings == ("header says 3 words, the file holds 500",)


def test_a_header_with_a_wrong_dimension(tmp_path: Path) -> None:
    path = put(tmp_path, "2 5\na 1 2\nb 3 4\n")
    with pytest.raises(InputError, match="says 5 numbers for each word, the lines hold 2"):
        load(path)
    found = load(path, errors="skip")
    assert found.vectors.tolist() == [[1, 2], [3, 4]]
    assert found.report is not None
    assert found.report.warnings == ("header says 5 numbers for each word, the lines hold 2",)


@pytest.mark.parametrize("content", ["5 3\n", "5 3", "5 3\n\n \n"])
def test_only_a_header(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match="holds no line with a word"):
        load(put(tmp_path, content))


def test_files_without_usable_lines_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no usable word vector \(1 damaged rows were skipped\)"):
        load(put(tmp_path, "1 3\na 1 2 nan\n"), errors="skip")


def test_naming_the_wrong_text_format(tmp_path: Path) -> None:
    path = put(tmp_path, "the 1 2\n")
    with pytest.raises(InputError, match='is no header, expected "count dimension"'):
        load(path, format="text")


def test_float64(tmp_path: Path) -> None:
    found = load(put(tmp_path, "1 2\na 0.1 0.12345678901234567\n"), dtype="float64")
    assert found.vectors.dtype == np.float64
    assert found.vectors.tolist() == [[0.1, 0.12345678901234567]]


def test_max_vocab_ignores_later_lines(tmp_path: Path) -> None:
    path = put(tmp_path, "4 1\na 1\na 9\nb 2\nbroken\n")
    found = load(path, max_vocab=2)
    assert found.words == ["a", "b"]
    assert found.report is not None
    assert (found.report.complete, found.report.duplicates, found.report.warnings) == (False, 1, ())


def test_max_vocab_at_the_very_end_is_complete(tmp_path: Path) -> None:
    path = put(tmp_path, "3 1\na 1\nb 2\nc 3\n")
    for count, complete in ((2, False), (3, True), (4, True)):
        report = load(path, max_vocab=count).report
        assert report is not None
        assert report.complete is complete
        assert report.n_words == min(count, 3)


@settings(max_examples=25)
@given(st.integers(1, 300), st.integers(1, 60), st.one_of(st.none(), st.integers(1, 70)), st.randoms())
def test_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, block: int, n: int, max_vocab: int | None, random: object
) -> None:
    """Line numbers, order and duplicates do not depend on the block size."""
    path = tmp_path_factory.mktemp("blocks") / "x.vec"
    words = [f"w{i % 37}" for i in range(n)]
    lines = [f"{word} {i}.25 -{i}" if i % 11 != 7 else f"{word} bad" for i, word in enumerate(words)]
    path.write_text(f"{n} 2\n" + "\n".join(lines) + "\n\n")
    whole = load(path, errors="skip", max_vocab=max_vocab)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_BYTES", block)
        pieces = load(path, errors="skip", max_vocab=max_vocab)
    assert pieces.report == whole.report
    assert pieces.words == whole.words
    assert np.array_equal(pieces.vectors, whole.vectors)
    expected: dict[str, float] = {}
    for i, word in enumerate(words):
        if i % 11 != 7 and (max_vocab is None or len(expected) < max_vocab):
            expected.setdefault(word, i + 0.25)
    assert whole.words == list(expected)
    assert whole.vectors[:, 0].tolist() == list(expected.values())


def test_an_endless_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3 of .* is longer than 8388608 bytes"):
        load(put(tmp_path, "2 1\na 1\n" + "b" * 9_000_000))


def test_stream_removes_duplicates_across_batches(tmp_path: Path) -> None:
    path = put(tmp_path, "6 1\na 1\nb 2\nc 3\na 4\nd 5\ne 6\n")
    batches = list(stream(path, batch=2))
    assert [batch.words for batch in batches] == [["a", "b"], ["c", "d"], ["e"]]
    assert [batch.vectors.ravel().tolist() for batch in batches] == [[1, 2], [3, 5], [6]]
    assert [batch.words for batch in stream(path, batch=10, max_vocab=3)] == [["a", "b", "c"]]


def test_stream_checks_before_the_first_batch(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        stream(tmp_path / "no.vec")


def test_an_abandoned_stream_stops_its_threads(tmp_path: Path) -> None:
    rows = "".join(f"w{i} {i}\n" for i in range(50))
    batches = stream(put(tmp_path, "50 1\n" + rows), batch=1)
    assert next(batches).words == ["w0"]
    del batches


def test_an_abandoned_reading_does_not_wait_for_threads(tmp_path: Path) -> None:
    """The garbage collector may close it while another thread starts: waiting for a thread would then be a deadlock."""
    path = put(tmp_path, "100000 2\n" + "".join(f"w{i} 1 2\n" for i in range(100_000)))
    goes_on = Event()

    def parse_later(block: bytes, *rest: Any) -> Rows:
        if b"w1 " not in block:
            assert goes_on.wait(60)
        return parse_block(block, *rest)

    with open_source(path) as source:
        rows = module.read(Reading(path, "text", np.dtype("f4")), source, parse=parse_later)
        assert next(rows).words[0] == "w0"
        closing = Thread(target=rows.close, daemon=True)  # type: ignore[attr-defined]  # a generator
        closing.start()
        closing.join(30)
        waits = closing.is_alive()
        goes_on.set()
    assert not waits


def test_gzip_under_any_name(tmp_path: Path) -> None:
    found = load(put(tmp_path, gzip.compress(b"1 2\na 1 2\n"), "x.vec"))
    assert found.words == ["a"]


def test_a_truncated_gzip_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content = "2000 2\n" + "".join(f"w{i} {x} {y}\n" for i, (x, y) in enumerate(rng.random((2000, 2))))
    with pytest.raises(InputError, match="damaged or truncated gzip"):
        load(put(tmp_path, gzip.compress(content.encode())[:-3000]))


@pytest.mark.parametrize("word", ["a\nb", " a", "a ", "at 8", "x nan"])
def test_words_that_text_cannot_hold(tmp_path: Path, word: str) -> None:
    with (
        pytest.raises(InputError, match="cannot be written as text"),
        open_writer(tmp_path / "x.vec", 1) as writer,
    ):
        writer.write([word], np.ones((1, 1)))
    assert list(tmp_path.iterdir()) == []


def test_words_with_inner_blanks_are_restored(tmp_path: Path) -> None:
    with open_writer(tmp_path / "x.vec", 1) as writer:
        writer.write([". . .", "8 a"], np.ones((2, 1)))
    assert load(tmp_path / "x.vec").words == [". . .", "8 a"]


def test_written_bytes(tmp_path: Path) -> None:
    vectors = np.array([[0.5, -0.25], [3, 1e-7]])
    for name, digits, expected in (
        ("x.vec", None, "2 2\na 0.5 -0.25\nb 3.0 1e-07\n"),
        ("x.txt", 1, "2 2\na 0.5 -0.2\nb 3.0 0.0\n"),
        ("x.glove", 3, "a 0.500 -0.250\nb 3.000 0.000\n"),
    ):
        with open_writer(tmp_path / name, 2, count=2, digits=digits) as writer:
            writer.write(["a", "b"], vectors)
        assert (tmp_path / name).read_text() == expected


def test_an_unknown_count_is_filled_in(tmp_path: Path) -> None:
    with open_writer(tmp_path / "x.vec", 1) as writer:
        writer.write(["a"], np.ones((1, 1)))
        writer.write(["b", "c"], np.ones((2, 1)))
    header = (tmp_path / "x.vec").read_text().split("\n")[0]
    assert header.split() == ["3", "1"]
    report = load(tmp_path / "x.vec").report
    assert report is not None
    assert (report.header_count, report.warnings) == (3, ())


def test_lines_without_numbers_under_an_absurd_header(tmp_path: Path) -> None:
    for errors in ("raise", "skip"):
        with pytest.raises(InputError, match="hold no numbers"):
            load(put(tmp_path, "1 999999999999\nsome words\n"), errors=errors)


@pytest.mark.parametrize(("last", "kept"), [("1.2", 1), ("1.", 1), ("1", 1), ("1.23", 2)])
def test_a_truncated_last_number_is_detected_if_all_have_equal_digits(tmp_path: Path, last: str, kept: int) -> None:
    path = put(tmp_path, f"a 0.12 -3.45\nb 0.23 {last}")
    report = load(path, errors="skip").report
    assert report is not None
    assert report.n_words == kept
    assert "line 2, the last, has no line end" in report.warnings[0]
    if kept == 1:
        message = (
            "line 2 of .* has no line end and its last number has fewer digits than the others, expected 2 after the"
        )
        with pytest.raises(InputError, match=message):
            load(path)


def test_a_last_line_without_a_line_end_is_reported(tmp_path: Path) -> None:
    path = put(tmp_path, "a 0.1 0.23\nb 1 2\nc 3 4")
    whole, part = load(path).report, load(path, max_vocab=2).report
    assert whole is not None
    assert part is not None
    assert whole.warnings == (
        "line 3, the last, has no line end: if the file was truncated there, digits of its last number are missing",
    )
    assert part.warnings == ()


# --------------------------------------------------------------------------- blocks of lines

F32 = np.dtype("float32")

numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-5, 5).map(lambda x: f"{x:.4f}"),
    st.floats(-1e30, 1e30).map(lambda x: f"{x:.18e}"),
    st.sampled_from(["-0.0", "1", ".5", "5.", "+1.5", "1e-5", "1E+3", "0", "-0", "1e-50", "0.1000000000000000055"]),
)
words = st.text(st.characters(exclude_characters=" \t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.data(), st.integers(1, 5))
def test_blocks_agree_with_python(data: st.DataObject, dim: int) -> None:
    rows = data.draw(st.lists(st.tuples(words, st.lists(numbers, min_size=dim, max_size=dim)), min_size=1))
    ending = data.draw(st.sampled_from(["\n", " \n", "\r\n", " \r\n"]))
    text = "".join(f"{word} {' '.join(values)}{ending}" for word, values in rows)
    block = parse_block(text.encode(), dim, F32)
    assert not block.damaged
    assert block.words == [word for word, _ in rows]
    expected = np.array([[np.float32(float(value)) for value in values] for _, values in rows], dtype=np.float32)
    assert np.array_equal(block.vectors.view(np.uint32), expected.view(np.uint32))


@given(st.binary(max_size=200), st.integers(1, 3))
def test_bulk_and_line_by_line_parsing_agree_on_any_bytes(noise: bytes, dim: int) -> None:
    # Digits and blanks are frequent in this noise, so that some lines are valid.
    data = bytes(b"0123456789.- \nab\t\r"[byte % 18] if byte < 200 else byte for byte in noise) + b"\n"
    block = parse_block(data, dim, F32)
    good: list[tuple[str, list[float]]] = []
    bad: list[tuple[int, str, str]] = []
    lines = data.split(b"\n")[:-1]
    for number, line in enumerate(lines):
        try:
            good.append(parse_line(line, dim, F32))
        except LineError as error:
            bad.append((number, f"line {number + 1}", str(error)))
    assert list(block.damaged) == bad
    assert len(block.words) + len(bad) == len(lines)
    assert block.words == [word for word, _ in good]
    assert block.vectors.tolist() == [np.array(values, dtype=np.float32).tolist() for _, values in good]


def test_damaged_lines_do_not_affect_others() -> None:
    block = parse_block(b"a 1 2\nb 1\nc 3 4\nd 1 x\n e 5 6\n\xff 1 2\nf 5 6\n", 2, F32)
    assert block.words == ["a", "c", "f"]
    assert block.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [position for position, _, _ in block.damaged] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "is empty, expected a word and 2 numbers"),
        (b"word 1", "holds 1 numbers, expected 2"),
        (b"word 1 2 3", "holds 3 numbers, expected 2"),
        (b"word 1 2 3 4", "holds 4 numbers, expected 2"),
        (b" 1 2", "starts with a blank, expected a word before the 2 numbers"),
        (b"word 1 two", "holds something else as number 2, expected a decimal number"),
        (b"word nan 1", "holds 'nan' as number 1, expected a finite float32 number"),
        (b"word 1 -inf", "holds '-inf' as number 2, expected a finite float32 number"),
        (b"word 1e39 1", "holds '1e39' as number 1, expected a finite float32 number"),
        (b"word 1_0 1", "holds something else as number 1, expected a decimal number"),
        (
            b"w\xff 1 2",
            "has a word with the byte 0xff at position 1, expected UTF-8 text (--encoding names another)",
        ),
    ],
)
def test_explanations_of_damaged_lines(line: bytes, message: str) -> None:
    with pytest.raises(LineError, match=f"^{re.escape(message)}$"):
        parse_line(line, 2, F32)
    assert parse_block(b"ok 1 2\n" + line + b"\n", 2, F32).damaged == [(1, "line 2", message)]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b". . . 1 2", ". . ."),
        (b"at  name 1 2 ", "at  name"),
        (b"1990 1 2", "1990"),
        (b"tab\t1\t2", "tab"),
        (b"double  1  2", "double"),
        ("a\u00a0b 1 2".encode(), "a\u00a0b"),
        ("\u0085\u2028 1 2".encode(), "\u0085\u2028"),
        (b"a\rb 1 2\r", "a\rb"),
        (b"v\x0bt 1 2", "v\x0bt"),
    ],
)
def test_words(line: bytes, word: str) -> None:
    block = parse_block(line + b"\n", 2, F32)
    assert block.words == [word]
    assert block.vectors.tolist() == [[1, 2]]


def test_more_numbers_in_a_line_than_are_parsed_at_a_time() -> None:
    values = np.arange(40_000)
    block = parse_block(b"w " + b" ".join(b"%d.5" % value for value in values) + b"\n", 40_000, F32)
    assert block.vectors.tolist() == [(values + 0.5).tolist()]


def test_lines_as_float64() -> None:
    block = parse_block(b"a 0.1 1e39\n", 2, np.dtype("float64"))
    assert block.vectors.tolist() == [[0.1, 1e39]]


@pytest.mark.parametrize(("line", "count"), [(b"a 1 2", 2), (b"1 2 3", 2), (b"a b 1", 1), (b"a 1 b", 0), (b"", 0)])
def test_trailing_numbers(line: bytes, count: int) -> None:
    assert trailing_numbers(line) == count


def test_words_that_are_too_long_are_refused() -> None:
    longest = b"w" * MAX_WORD_BYTES
    block = parse_block(longest + b" 1 2\nw" + longest + b" 3 4\nx 5 6\n", 2, F32)
    assert block.words == [longest.decode(), "x"]
    assert block.damaged == [(1, "line 2", "has a word of 65536 bytes, expected at most 65535")]


def test_lines_of_many_blanks_or_numbers_take_linear_time() -> None:
    line = b"w" + b" " * 300_000 + b"1" + b" \t" * 300_000 + b"2"
    assert parse_line(line, 2, F32) == ("w", [1.0, 2.0])
    assert trailing_numbers(b"w" + b" 0" * 600_000) == MAX_DIM + 1
    with pytest.raises(LineError, match="numbers, expected 2"):
        parse_line(b"w" + b"  0" * 600_000, 2, F32)
