"""Checks of arguments and of settings files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.io.arguments import UTF8, as_choice, as_count, as_dtype, as_encoding, as_path, parse_json, read_toml

# --------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("name", ["a/b.vec", b"a/b.vec", Path("a/b.vec")])
def test_paths_can_be_text_bytes_or_path_like(name: object) -> None:
    assert as_path(name) == Path("a/b.vec")


@pytest.mark.parametrize("name", [None, 5, 1.5, ["a"], "", "a\0b"])
def test_other_objects_are_not_paths(name: object) -> None:
    with pytest.raises(InputError, match="path, expected") as error:
        as_path(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [1, np.int64(7), 10])
def test_integers_of_any_type_are_accepted(value: object) -> None:
    assert as_count("k", value, most=10) == value


@pytest.mark.parametrize("value", [0, -1, 11, True, 1.0, "3", None])
def test_numbers_out_of_range_and_other_types_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"received k=.*expected .*1 to 10"):
        as_count("k", value, most=10)


def test_as_choice_accepts_only_the_choices() -> None:
    assert as_choice("errors", "skip", ("raise", "skip")) == "skip"
    with pytest.raises(InputError, match="received errors=None, expected 'raise' or 'skip'"):
        as_choice("errors", None, ("raise", "skip"))
    with pytest.raises(InputError, match="expected one of a, b, c"):
        as_choice("format", ["a"], ("a", "b", "c"))


@pytest.mark.parametrize("value", ["float32", np.float32, np.dtype("<f4")])
def test_dtypes_are_accepted_by_any_name(value: object) -> None:
    assert as_dtype(value) == np.float32


@pytest.mark.parametrize("value", [None, "complex64", object, "nonsense", 3, "float16", ">f4", "((" * 1000])
def test_other_dtypes_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="expected one of float32, float64"):
        as_dtype(value)


@pytest.mark.parametrize("name", ["latin-1", "ISO-8859-1", "l1"])
def test_encodings_get_their_python_name(name: str) -> None:
    assert as_encoding(name) == "iso8859-1"
    assert as_encoding("UTF8") == as_encoding("utf-8") == UTF8


@pytest.mark.parametrize("value", ["klingon", "rot13", "base64", "", "\0", 5, None, "utf-8\nx"])
def test_codecs_that_are_not_text_encodings_are_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"received encoding=.*, expected one that Python knows, such as utf-8"):
        as_encoding(value)


@pytest.mark.parametrize("name", ["utf-16", "utf-32-le", "cp037"])
def test_encodings_that_do_not_extend_ascii_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="in which blanks and digits are not those of ASCII"):
        as_encoding(name)


# --------------------------------------------------------------------------- settings files


def test_settings_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('seeds = [0, 1]\n[grid]\ncoreset = "lloyd"\n')
    assert read_toml(path, like="") == {"seeds": [0, 1], "grid": {"coreset": "lloyd"}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", r"is not TOML .*expected lines like: seeds = \[0\]"),
        (b"\xff", "is not TOML"),
        (b"# " + b"x" * 6000, "line 1 of .* has 6,002 bytes"),
        (b"#\n" * 40_000, "is larger than 65,536 bytes"),
    ],
)
def test_invalid_settings_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_toml(path, like="seeds = [0]")


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read \(No such file"):
        read_toml(tmp_path / "none.toml", like="")


# --------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b"\xff", "can't decode"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b'{"a": 1, "b": 2, "a": 3}', "the name 'a' occurs more than once"),
        (b"9" * 21, "a number has 21 digits"),
        (b"-" + b"9" * 5000, "a number has 5001 digits"),
        (b"[" * 70 + b"]" * 70, "nested more than 64 deep"),
        (b"[" * 100_000 + b"]" * 100_000, "nested more than 64 deep"),
        (b'{"a":' * 100_000, "nested more than 64 deep"),
    ],
)
def test_invalid_json_is_a_value_error(text: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_greatest_depth() -> None:
    assert parse_json(b"[[{}]]", most_depth=3) == [[{}]]
    with pytest.raises(ValueError, match="nested more than 2 deep"):
        parse_json(b"[[[0]]]", most_depth=2)
