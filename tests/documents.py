"""What the documents show: their blocks, the commands in them, flags, links and headings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.project import ROOT

README = ROOT / "README.md"
DOCUMENTS = (README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCE = re.compile(r"^```(?P<language>[a-z]*)$")
_NOT_RUN = re.compile(r"^<!-- not run: (?P<reason>.+) -->$")
_HEADING = re.compile(r"^#{1,6} (?P<title>.+)$")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\[[^][]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block. line: that of its first line in the document; reason: why it is not to be run, if so."""

    path: Path
    language: str
    line: int
    text: str
    reason: str | None = None

    @property
    def where(self) -> str:
        """For messages."""
        return f"{self.path.relative_to(ROOT)}, line {self.line}"


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a document, in order."""
    found, begun, language, reason = [], 0, "", None
    lines = path.read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if not begun:
            before = _NOT_RUN.match(lines[number - 2])
            begun, language, reason = number, fence["language"], before and before["reason"]
        else:
            found.append(Block(path, language, begun + 1, "\n".join(lines[begun : number - 1]), reason))
            begun = 0
    assert not begun, f"{path}: the block of line {begun} has no end"
    return found


def prose(path: Path) -> list[str]:
    """The lines of a document by number, those of its blocks empty."""
    lines = path.read_text("utf-8").splitlines()
    for block in blocks(path):
        for number in range(block.line - 2, block.line + block.text.count("\n") + 1):
            lines[number] = ""
    return lines


def code_spans(path: Path) -> Iterator[tuple[int, str]]:
    """What stands between backticks outside of blocks, with the number of its line."""
    for number, line in enumerate(prose(path), 1):
        for text in _CODE.findall(line):
            yield number, text


# --------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class Command:
    """A line of a shell block, its comment and the files of its standard streams taken off."""

    args: list[str] = field(default_factory=list)
    stdin: str | None = None
    stdout: str | None = None


def commands(text: str) -> Iterator[Command]:
    """The commands of a shell block."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        files: dict[str, str] = {}
        for sign in ("<", ">"):
            if sign in words:
                at = words.index(sign)
                files[sign] = words[at + 1]
                del words[at : at + 2]
        if words:
            yield Command(words, files.get("<"), files.get(">"))


# --------------------------------------------------------------------------- links


def headings(path: Path) -> list[str]:
    """The titles in a document, in order."""
    return [found["title"] for found in map(_HEADING.match, prose(path)) if found]


def section(path: Path, title: str) -> list[str]:
    """The lines below a heading, up to the next of its kind."""
    lines = path.read_text("utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line == f"## {title}")
    end = next((n for n in range(begin + 1, len(lines)) if lines[n].startswith("## ")), len(lines))
    return lines[begin + 1 : end]


def links(path: Path) -> list[str]:
    """Where a document points to."""
    return [found["target"] for line in prose(path) for found in _LINK.finditer(line)]
