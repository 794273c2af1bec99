from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.cli.escapes import visible, visible_json
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import qwp

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# Any character, lone surrogates among them, and the dangerous ones often.
texts = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x1b\x07\x9b\x9d\x7f\n\r\t\u2028" + BIDI))


def is_obeyed(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in BIDI


@given(texts)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert not any(is_obeyed(character) for character in visible(text))
    assert not any(is_obeyed(character) for character in visible(text, lines=True) if character != "\n")
    visible(text).encode()  # no half of a surrogate pair either


@given(texts)
def test_lines_keep_their_breaks_and_nothing_else_changes(text: str) -> None:
    assert visible(text, lines=True).split("\n") == [visible(line) for line in text.split("\n")]


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_ordinary_text_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b]52;c;bWluZQ==\x1b\\", r"\x1b]52;c;bWluZQ==\x1b" + "\\"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b2J\x9d0;x\x9c", r"\x9b2J\x9d0;x\x9c"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\udcff", r"\udcff"),
        ("\u2028\ufeff\U000e0041", r"\u2028\ufeff\U000e0041"),
        ("می‌خواهم क्‍ष", "می‌خواهم क्‍ष"),
        ("niño 日本語 👩‍👩‍👧 C:\\x1b", "niño 日本語 👩‍👩‍👧 C:\\x1b"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.recursive(texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=5), st.booleans())
def test_json_means_the_same_and_holds_nothing_that_is_obeyed(value: object, only_ascii: bool) -> None:
    text = visible_json(json.dumps(value, ensure_ascii=only_ascii, indent=1))
    assert json.loads(text) == json.loads(json.dumps(value))
    assert not any(is_obeyed(character) for character in text if character != "\n")


NASTY = [
    "\x1b]0;mine\x07",
    "\x1b[2J",
    "\x9b1m",
    "a\u202eb",
    "\u2066c",
    "d\u200fe",
    "f\x7f",
    "g\u2028h",
    "[red]i[/]",
    "j\\x1b",
]


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    """A folder with vectors whose words and names would give orders to a terminal, and two aligned files."""
    vectors = np.random.default_rng(0).standard_normal((len(NASTY), 4)).astype("f4")
    for name in ("s\x1b[31m.npz", "t\u202e.npz"):
        io.save(Embeddings(NASTY, vectors), tmp_path / name)
    return tmp_path


# In a pipe the same commands write words exactly.
TABLE = ["--format", "table"]
COMMANDS = [
    ["info", "{src}", *TABLE],
    ["info", "{src}.none"],
    ["convert", "{src}", "{folder}/out\x1b[2J.vec"],
    ["convert", "{src}", "{folder}/none\x1b[2J/out.vec"],
    ["align", "{src}", "{tgt}", "--out", "{folder}/\x1b[1m", "--method", "identical", "--refine", "1"],
    ["translate", "{aligned}", *NASTY[:3], "unknown\x1b[2J", *TABLE],
    ["translate", "{aligned}", "\x1b[2J\x1b[2J"],
    ["translate", "{aligned}", "a", "--retrieval", "\x1b[2J"],
    ["lexicon", "{aligned}", "--out", "{folder}/lexicon\x1b[2J.csv", "--all"],
    ["lexicon", "{aligned}", "--all", *TABLE],
    ["lexicon", "{aligned}", "--out", "{folder}/lexicon.txt", "--format", "muse", "--all"],
    ["export", "{aligned}", "--src-out", "{folder}/\u202e.vec"],
    ["info", "{aligned}", *TABLE],
    ["evaluate", "{aligned}", "--lexicon", "{folder}/gold\x1b[2J.txt", *TABLE],
    ["evaluate", "{aligned}", "--lexicon", "{folder}/none\x1b[2J"],
    ["methods", "\x1b[2J"],
    ["\x1b[2J"],
    ["info", "--\x1b[2J"],
]


def test_no_command_gives_orders_to_a_terminal(nasty: Path) -> None:
    names = {
        "src": nasty / "s\x1b[31m.npz",
        "tgt": nasty / "t\u202e.npz",
        "folder": nasty,
        "aligned": nasty / "dir\x1b[",
    }
    (nasty / "gold\x1b[2J.txt").write_text("".join(f"{word}\t{word}\n" for word in NASTY), newline="\n")
    made = qwp("align", names["src"], names["tgt"], "--out", names["aligned"], "--method", "identical", "--refine", 1)
    assert made.code == 0, made.err
    codes = []
    for command in COMMANDS:
        for extra in ([], ["--json"]):
            asked = [part for part in command if not extra or part not in TABLE]
            ran = qwp(*(part.format(**names) for part in asked), *extra)
            codes.append(ran.code)
            hidden = [character for character in ran.out + ran.err if is_obeyed(character) and character != "\n"]
            assert not hidden, command
            if extra:
                assert ran.json["command"] == command[0]
                assert ("error" in ran.json) == (ran.code != 0)
    assert set(codes) == {0, 2}
    assert codes.count(0) >= 2 * 9


def test_files_hold_words_exactly(nasty: Path) -> None:
    out = nasty / "out.safetensors"
    assert qwp("convert", nasty / "t\u202e.npz", out).code == 0
    assert io.load(out).words == NASTY
