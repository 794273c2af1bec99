"""Words and file names with control characters, through every command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import qwp
from tests.showing.test_terminal import is_obeyed

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
    """Make a folder of vectors with control characters in words and names, and two aligned files."""
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


def test_no_command_prints_control_characters(nasty: Path) -> None:
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
