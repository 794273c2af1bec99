"""Detect the format of a file from its content. `formats.detect` compares magic numbers first.

safetensors, DuckDB, FAISS and fastText files begin in ways that text cannot. Consistency decides between the others:

- A line "count dimension" is followed by lines of text or by binary records. The detector checks the first 50 of them,
  and for a small file whether there are `count` of them. If both interpretations are consistent, text wins, because
  binary numbers rarely look like text.
- The first line may instead be a word with one number. That is so if several lines follow, each with one number as
  well, and their number is not `count`. A single line that follows could be a truncated text file.
- Without such a line, a file with a number at the end of most lines is text without a header.

A writer runs the same detection before its file appears, and refuses words that would mislead a reader.
"""

from __future__ import annotations

import codecs
import re
import struct
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.spaces.io.arguments import UTF8
from qwp.spaces.io.numbers import BOM, HEADER, trailing_numbers
from qwp.spaces.io.sources import HEAD_BYTES, Source
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

_UNPACK = "unpack it first"
# First bytes, description and remedy of files that hold no vectors.
_MAGICS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x7fELF", "a program", ""),
    (b"MZ", "a program", ""),
    (b"%PDF", "a PDF document", ""),
    (b"\x89PNG", "a PNG image", ""),
    (b"\xff\xd8\xff", "a JPEG image", ""),
    (b"GIF8", "a GIF image", ""),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "save its arrays with numpy.savez(path, words=words, vectors=vectors)"),
    (b"PK\x03\x04", "a zip archive inside gzip", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", ""),
    (b"\x1f\x8b", "gzip inside gzip", _UNPACK),
    (b"BZh", "a bzip2 file", _UNPACK),
    (b"\xfd7zXZ\x00", "an xz file", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd file", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"\x93NUMPY", "a NumPy array inside gzip", _UNPACK),
    (b"-----BEGIN", "a key or a certificate", ""),
    (b"#!", "a script", ""),
)
_MARKUP = ((b"<!doctype html", "a web page"), (b"<html", "a web page"), (b"<?xml", "an XML file"))


def describe(head: bytes) -> tuple[str, str]:
    """Return a description of a file without vectors, by its first bytes, and a remedy, which may be empty."""
    for magic, what, remedy in _MAGICS:
        if head.startswith(magic):
            return what, remedy
    start = head.lstrip(b" \t\r\n\xef\xbb\xbf")
    if not start:
        return "nothing but blanks and line breaks", ""
    for tag, what in _MARKUP:
        if start[: len(tag)].lower() == tag:
            return what, "the download may have failed"
    if start[:1] in (b"{", b"["):
        return "JSON", ""
    if not is_utf8(head):
        return "binary data or text that is not UTF-8", ""
    return ("binary data", "") if b"\0" in head else ("text without a vector on most of its first lines", "")


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8 text, possibly with an incomplete last character."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=False)
    except UnicodeDecodeError:
        return False
    return True


_FASTTEXT_MAGIC = struct.pack("<i", 793712314)
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_DUCKDB_MARK = b"DUCK"  # after a checksum of eight bytes
_FAISS_STARTS = (b"Ix", b"Iw", b"IH", b"IP")  # an index begins with its type, four letters, and sizes
_WIDE_TEXT = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_LINES = 50  # lines that are checked
_RECORDS = 50  # binary records that are checked
# Control characters do not occur in text, and almost always occur in binary numbers.
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")


def sniff(source: Source, encoding: str = UTF8) -> str:
    """Return the name of the format of a file. encoding: encoding of the words of a binary file."""
    head = source.head
    binary = _binary_format(head, source)
    if binary is not None:
        return binary
    body = head.removeprefix(BOM)
    _refuse_numbers_alone(source)
    header = HEADER.match(body)
    found = None
    if header is not None:
        rest, claims = body[header.end() :], (int(header[1]), int(header[2]))
        found = _after_header(rest, *claims, encoding, whole=_is_whole(head))
    if found != "word2vec-binary":
        refuse_other_text(source)
    return found or _without_header(source, body)


def _binary_format(head: bytes, source: Source) -> str | None:
    """Return the format of a file that begins in a way that text cannot; only fastText models may be gzipped."""
    if head.startswith(_FASTTEXT_MAGIC):
        return "fasttext"
    if source.packed:
        return None
    # Before pickles: the length of a safetensors header may consist of the bytes with which a pickle begins.
    if _is_safetensors(head, source.size):
        return "safetensors"
    if _PICKLE.match(head):
        raise InputError(
            f"{source.path} is a pickle (gensim's `.kv` and `.model` files are), expected a vector file: qwp reads no "
            "pickles, because a pickle can run code. Load it with gensim and give the object to qwp.align, or write it "
            "with KeyedVectors.save_word2vec_format"
        )
    if head[8:12] == _DUCKDB_MARK:
        return "duckdb"
    return "faiss" if head[:2] in _FAISS_STARTS and b"\0" in head[4:12] else None


def refuse_wide_text(source: Source) -> None:
    """Raise an InputError for text in UTF-16 or UTF-32."""
    for mark, name in _WIDE_TEXT:
        if source.head.startswith(mark):
            raise InputError(
                f"{source.path} is {name} text, expected a vector file or a dictionary in UTF-8: convert it, as with "
                f"`iconv -f {name} -t UTF-8`"
            )


def old_line_ends(path: Path) -> InputError:
    """Return the error for text whose lines end in carriage returns alone, which would be read as one line."""
    return InputError(
        f"{path} ends its lines in carriage returns alone, as old Macintosh systems did; expected line feeds: "
        "convert it, as with `tr '\\r' '\\n'`"
    )


def refuse_other_text(source: Source) -> None:
    """Raise an InputError for text in another encoding or with other line ends, which would be misread silently."""
    refuse_wide_text(source)
    body = source.head.removeprefix(BOM)
    header = HEADER.match(body)
    if _ends_lines_in_cr(body) or (header is not None and _ends_lines_in_cr(body[header.end() :])):
        raise old_line_ends(source.path)


def _ends_lines_in_cr(body: bytes) -> bool:
    """Return whether a single line consists of lines ended by carriage returns, with numbers at their ends."""
    body = body.rstrip(b" \t\r\n")
    if b"\n" in body or b"\r" not in body:
        return False
    first, *others = [line for line in body.split(b"\r") if line.strip(b" \t")][:_LINES]
    if HEADER.fullmatch(first) is None and trailing_numbers(first) == 0:
        return False
    return all(trailing_numbers(line) > 0 for line in others[:-1]) and bool(others)


def _refuse_numbers_alone(source: Source) -> None:
    """Raise an InputError for a `.tsv` file of numbers alone: the first number of each line would become a word."""
    if not source.path.name.removesuffix(".gz").endswith(".tsv"):
        return
    lines = _visible_lines(source.head, whole=_is_whole(source.head))[:_LINES]
    if 2 * sum(trailing_numbers(b"0\t" + line) == line.count(b"\t") + 1 for line in lines) > len(lines):
        raise InputError(
            f"{source.path} holds numbers between tabs and no words (as TensorFlow's projector takes them), expected a "
            "word before the numbers of each line: put the words in front, as with `paste words.txt vectors.tsv`"
        )


def _is_whole(head: bytes) -> bool:
    return len(head) < HEAD_BYTES


def _is_safetensors(head: bytes, size: int) -> bool:
    return len(head) > 8 and head[8:9] == b"{" and 8 + int(struct.unpack("<Q", head[:8])[0]) <= size


def _without_header(source: Source, body: bytes) -> str:
    lines = _visible_lines(body, whole=_is_whole(source.head))[:_LINES]
    counts = [trailing_numbers(line) for line in lines]
    consistent = len(set(counts)) == 1 and counts[0] > 0 and all(is_utf8(line) for line in lines)
    if consistent or (b"\0" not in body and 2 * sum(count > 0 for count in counts) > len(counts)):
        return "glove"
    what, remedy = describe(source.head)
    if lines and all(len(line.split()) == 2 for line in lines) and not any(counts):
        remedy = "it looks like a dictionary of word pairs, which --lexicon takes"
    raise InputError(
        f"{source.path} is {what}, expected a vector file (text, glove, word2vec-binary, npz or safetensors): "
        + (remedy or "qwp does not recognise its format; pass format= (--input-format) to name it")
    )


def _after_header(body: bytes, count: int, dim: int, encoding: str, *, whole: bool) -> str:
    """Return the format of a file that begins with "count dimension", or a word and a number. body: what follows."""
    lines = _visible_lines(body, whole=whole)
    numbers = [trailing_numbers(line) for line in lines[:_LINES]]
    as_many = whole and len(lines) == count
    is_text = bool(lines) and dim > 0 and min(numbers) >= dim
    is_binary = _holds_records(body, count, dim, encoding, whole=whole)
    if is_text and (as_many or not whole or not is_binary):
        return "text"
    if is_binary:
        return "word2vec-binary"
    if len(lines) > 1 and set(numbers) == {1} and not as_many:
        return "glove"
    return "text" if _resembles_text(body, numbers, dim) else "word2vec-binary"


def _holds_records(body: bytes, count: int, dim: int, encoding: str, *, whole: bool) -> bool:
    """Return whether the body consists of valid binary records, as far as it is known."""
    if not 0 < dim <= MAX_DIM:
        return False
    position = found = 0
    while found < _RECORDS:
        begin = _after_newlines(body, position)
        end = _end_of_record(body, begin, dim)
        if end > len(body):
            break
        if not _is_valid_record(body[begin:end], dim, encoding):
            return False
        position = end
        found += 1
    if whole and found < _RECORDS:
        return found == count and not body[position:].strip(b"\n")
    # Part of a file proves less: its bytes also have to look binary.
    return found > 0 and (bool(_CONTROL.intersection(body)) or not is_utf8(body))


def _after_newlines(body: bytes, position: int) -> int:
    while body[position : position + 1] == b"\n":
        position += 1
    return position


def _end_of_record(body: bytes, begin: int, dim: int) -> int:
    """Return the end of the record at `begin`; beyond the body if the record is incomplete."""
    blank = body.find(b" ", begin)
    return blank + 1 + 4 * dim if blank >= 0 else len(body) + 1


def _is_valid_record(record: bytes, dim: int, encoding: str) -> bool:
    """Return whether bytes are a word, a blank and finite numbers."""
    word = record[: -4 * dim - 1]
    if not word or len(word) > MAX_WORD_BYTES or b"\n" in word:
        return False
    try:
        word.decode(encoding)
    except UnicodeError:
        return False
    return bool(np.isfinite(np.frombuffer(record, dtype="<f4", offset=len(word) + 1)).all())


def _resembles_text(body: bytes, numbers: list[int], dim: int) -> bool:
    """Guess whether a damaged file is text: numbers end a line, or it begins with printable text."""
    if any(count >= dim > 0 for count in numbers):
        return True
    start = body[: 16 * (dim + 1)]
    return not _CONTROL.intersection(start) and is_utf8(start)


def _visible_lines(body: bytes, *, whole: bool) -> list[bytes]:
    """Return the lines that are not blank; an incomplete line, without its last token, only if it is the only one."""
    lines = body.split(b"\n")
    if not whole:
        last = lines.pop()
        if not any(lines):
            lines = [last[: max(last.rfind(b" "), 0)]]
    return [line for line in lines if line.strip()]
