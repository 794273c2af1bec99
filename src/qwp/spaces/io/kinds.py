"""What a file is that is no vector file, in words.

Its content is never part of a message: a path that came with somebody else's result may name any file.
"""

from __future__ import annotations

import codecs

_UNPACK = "unpack it first"
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


def recognised(head: bytes) -> tuple[str, str]:
    """What the first bytes say, and what to do about it (possibly nothing)."""
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
    """Whether these bytes are UTF-8 text, possibly with the last character cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=False)
    except UnicodeDecodeError:
        return False
    return True
