"""The source uses the terms of the field: the words that they replaced must not return."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tools import project

# Regular expressions, matched as whole words, and what to write instead.
PHRASES = {
    r"(?:of|what|beyond) chance": "null runs, null maps, null distribution",
    r"found again": "null hits",
    r"kept[ _]back": "held out",
    r"held on to|holding[ _]on": "anchored",
    r"(?:told|tells?) apart": "distinguished",
    r"yardstick": "baseline",
    r"second[ _]look|a look|look(?:ed|s|ing) at": "evaluated, rescored",
    r"(?:kept|put) beside|beside (?:it|them)": "cached, saved in a sidecar file",
    r"decided[ _]later": "parameters that a stage does not use",
    r"keeping[ _]banks": "bank cache",
    r"extents?": "variance",
    r"lifted|uncut": "padded, unprojected",
    r"stretches": "segments",
    r"paced": "rate-limited",
    r"hung up": "SIGHUP",
    r"sound rows": "valid rows",
    r"items without order": "unordered items",
    r"leads? back to": "back-translations",
    r"came in at": "ranked",
    r"said openly|told openly": "reported, documented",
    r"(?:is|are|was|were) (?:said|told)": "a sentence with a subject that acts",
    r"there (?:is|are) any|where there (?:is|are) (?:one|none)": "if the value exists",
    r"what is (?:said|told|kept|there)": "a noun",
    r"those of these|nothing is known of|nobody|somebody": "a noun",
    r"so many": "this number of",
    r"at hand|anew|whereby|handed on": "available, again, by which, passed on",
}
# Names, matched by case.
NAMES = {
    "Landing": "Download",
    "Shelf": "FileCache",
    "Standing": "JobStatus",
    "Whole": "Int",
    "Maybe": "Optional",
    "ByName": "MapOf",
    "CLEARLY_REAL": "ACCEPT_RATIO",
    "PERHAPS_REAL": "RESCORE_RATIO",
}


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line number of each forbidden word, the word, and what to write instead."""
    for number, line in enumerate(text.splitlines(), 1):
        for forbidden, flags in ((PHRASES, re.IGNORECASE), (NAMES, re.RegexFlag(0))):
            for pattern, instead in forbidden.items():
                if found := re.search(rf"\b(?:{pattern})\b", line, flags):
                    yield number, found[0], instead


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("# A map of chance is not kept back.", "of chance"),
        ("class Landing:", "Landing"),
        ("They are told apart by their size.", "told apart"),
    ],
)
def test_forbidden_words_are_found(line: str, word: str) -> None:
    assert word in [found for _, found, _ in findings(line)]


def test_parts_of_words_and_other_cases_are_allowed() -> None:
    assert [*findings("whole lines of a file; the shelf; what chances; WholeNumber; maybe; spaced")] == []


def test_the_source_has_no_forbidden_word() -> None:
    wrong = [
        f"{path.relative_to(project.ROOT)}:{number}: {word!r}, write: {instead}"
        for path in sorted(project.PACKAGE.rglob("*.py"))
        for number, word, instead in findings(path.read_text("utf-8"))
    ]
    assert wrong == [], "\n".join(wrong)
