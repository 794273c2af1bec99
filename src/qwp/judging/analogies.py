"""Analogies: "a is to b as c is to d", where d is searched among all words.

A file has four words on each line and sections that begin with a line ": name", such as Google's questions-words.txt
and the files of MUSE. The answer is the word with the highest score of unit vectors in the common space:

- `3CosAdd`: cos(d, b) - cos(d, a) + cos(d, c) (Mikolov et al. 2013);
- `3CosMul`: cos(d, b) cos(d, c) / (cos(d, a) + 0.001), with cosines scaled to 0..1 (Levy and Goldberg 2014).

The words of the question are excluded from the answers. A tie counts as wrong. A question is covered if its four words
are in the vocabulary. Across languages, a and b are words of the source language and c and d of the target language,
and target words compete.

`covered` is the share of covered questions with the right answer, as in MUSE and gensim; in `all`, uncovered questions
count as wrong. Intervals are percentile bootstrap over questions. Questions of a section share words, so the intervals
are too narrow.
"""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Floats, Ints, Stream
from qwp.errors import InputError, whole
from qwp.judging.evaluation import Score, ratios
from qwp.judging.ranks import (
    AUTO,
    WHERE,
    AlignedSpaces,
    Where,
    best_covered,
    check_aligned,
    mapped_sides,
    nothing_covered,
    sides_of,
)
from qwp.showing import html
from qwp.spaces.io.arguments import as_choice, as_path
from qwp.spaces.io.line_files import Skipped, text_lines

logger = logging.getLogger(__name__)

ADD, MUL = SCORINGS = ("3CosAdd", "3CosMul")
TOTAL = "total"
_UNNAMED = "questions"
# Avoids a division by zero (Levy and Goldberg 2014).
_EPSILON = 0.001

Question: TypeAlias = "tuple[str, str, str, str]"
Questions: TypeAlias = (
    "AnalogyQuestions | str | PathLike[str] | Mapping[str, Iterable[Sequence[str]]] | Iterable[Sequence[str]]"
)
"""Accepted forms of questions, see `AnalogyQuestions.of`."""


@dataclass(frozen=True)
class AnalogyQuestions:
    """Questions by section, in the order of the file.

    Attributes:
        sections: questions (a, b, c, d) by the name of the section.
        skipped: number of lines of the file that could not be used.
        skipped_lines: explanations of the first of them.
        source: the file of the questions.
    """

    sections: Mapping[str, tuple[Question, ...]]
    skipped: int = 0
    skipped_lines: tuple[str, ...] = ()
    source: str | None = None

    def __len__(self) -> int:
        return sum(len(questions) for questions in self.sections.values())

    def __iter__(self) -> Iterator[Question]:
        return (question for questions in self.sections.values() for question in questions)

    def __repr__(self) -> str:
        source = "" if self.source is None else f" of {self.source!r}"
        return f"AnalogyQuestions({len(self):,} questions in {len(self.sections):,} sections{source})"

    @classmethod
    def of(cls, given: Questions) -> AnalogyQuestions:
        """Convert AnalogyQuestions, a path, a dict of sections, or a list of four words each."""
        if isinstance(given, AnalogyQuestions):
            return given
        if isinstance(given, (str, PathLike)):
            return cls.load(given)
        sections = given if isinstance(given, Mapping) else {_UNNAMED: given}
        found = {str(name): tuple(_given_question(row) for row in rows) for name, rows in sections.items()}
        if not any(found.values()):
            raise InputError("received no analogies, expected at least one: (a, b, c, d)")
        return cls({name: questions for name, questions in found.items() if questions})

    @classmethod
    def load(cls, path: str | PathLike[str], *, case: str = "keep") -> AnalogyQuestions:
        """Read a file of questions.

        Args:
            path: UTF-8 text, four words on each line separated by blanks or tabs, and a line ": name" before each
                section; may be gzipped.
            case: "keep", or "lower" to lower-case the words.
        """
        name = as_path(path)
        lower = as_choice("case", case, ("keep", "lower")) == "lower"
        skipped, sections, section = Skipped(), dict[str, list[Question]](), _UNNAMED
        for number, line in text_lines(name, "four words", skipped):
            if line.startswith(":"):
                section = line[1:].strip() or _UNNAMED
                continue
            words = (line.lower() if lower else line).split()
            wrong = _wrong(words)
            if wrong and words:
                skipped.add(number, wrong)
            elif words:
                sections.setdefault(section, []).append((words[0], words[1], words[2], words[3]))
        if not sections:
            raise InputError(
                f"{name} holds no analogy ({skipped.in_words()}): expected four words on each line, a b c d, and lines "
                '": name" before sections'
            )
        skipped.warn(name)
        found = {each: tuple(questions) for each, questions in sections.items()}
        return cls(found, skipped.count, tuple(skipped.explanations), str(name))


@dataclass(frozen=True)
class SectionScores:
    """The accuracy on one section, or on all sections.

    Attributes:
        name: of the section.
        questions: number of questions.
        covered_questions: number of covered questions.
        covered: accuracy of 3CosAdd and 3CosMul over covered questions, 0 to 1; empty if no question is covered.
        all: the same over all questions.
    """

    name: str
    questions: int
    covered_questions: int
    covered: Mapping[str, Score]
    all: Mapping[str, Score]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "section": self.name,
            "questions": self.questions,
            "covered_questions": self.covered_questions,
            "covered": {name: score.to_dict() for name, score in self.covered.items()},
            "all": {name: score.to_dict() for name, score in self.all.items()},
        }


@dataclass(frozen=True)
class Analogies(html.NotebookCard):
    """The accuracy by section, in the order of the file, and over all questions."""

    where: Where
    sections: tuple[SectionScores, ...]
    total: SectionScores
    bootstrap: int
    seed: int
    source: str | None = None
    skipped: int = 0

    @property
    def share(self) -> float:
        """The share of covered questions."""
        return self.total.covered_questions / self.total.questions

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {100 * score.value:.1f} %" for name, score in self.total.covered.items())
        covered = f"{self.total.covered_questions:,} of {self.total.questions:,} questions covered"
        return f"Analogies({self.where}, {values}, {covered})"

    def _as_html(self) -> str:
        """Show one row for each section."""
        rows = [
            (
                each.name,
                f"{each.covered_questions:,} of {each.questions:,}",
                *(each.covered[name].percent() if each.covered else "" for name in SCORINGS),
            )
            for each in (*self.sections, self.total)
        ]
        title = html.line(
            f"Analogies, {self.where}", html.FIGURES, "percent of the covered questions, with 95 % intervals"
        )
        return html.card(html.FIGURES, title, html.table(rows, ("section", "covered", *SCORINGS)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types. Scores are shares from 0 to 1, not percent."""
        return {
            "path": self.source,
            "side": self.where,
            "skipped": self.skipped,
            "coverage": {
                "questions": self.total.questions,
                "covered_questions": self.total.covered_questions,
                "share": self.share,
            },
            "total": self.total.to_dict(),
            "sections": [section.to_dict() for section in self.sections],
        }


def evaluate_analogies(
    aligned: AlignedSpaces,
    questions: Questions,
    *,
    side: str = AUTO,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Analogies:
    """Score how many analogies the vectors solve by 3CosAdd and 3CosMul.

    Args:
        aligned: an Alignment, or two files in one space.
        questions: AnalogyQuestions, a path, a dict from section to questions, or questions (a, b, c, d).
        side: "src" or "tgt" for questions in one language, "cross" for a and b of the source and c and d of the target
            language, or "auto" for the one that covers most questions.
        bootstrap: number of resamples for the intervals.
        seed: of the resamples.
    """
    whole(0, bootstrap=bootstrap, seed=seed)
    check_aligned(aligned)
    given = AnalogyQuestions.of(questions)
    rows = {where: _rows(aligned, given, where) for where in WHERE}
    counts = {name: int((found[:, 0] >= 0).sum()) for name, found in rows.items()}
    where = best_covered(side, counts)
    if counts[where] == 0:
        raise InputError(_nothing_covered(aligned, given, where, counts))
    logger.info("%d of %d analogies of %s, %s", counts[where], len(given), given.source or "the user", where)
    covered = rows[where][:, 0] >= 0
    right = np.zeros((len(given), len(SCORINGS)))
    right[covered] = _right(aligned, where, rows[where][covered])
    sections, start = [], 0
    for number, (name, listed) in enumerate(given.sections.items()):
        part = slice(start, start + len(listed))
        sections.append(_scores(name, right[part], covered[part], bootstrap, (seed, 2 * number)))
        start = part.stop
    total = _scores(TOTAL, right, covered, bootstrap, (seed, 2 * len(sections)))
    return Analogies(where, tuple(sections), total, bootstrap, seed, given.source, given.skipped)


# --------------------------------------------------------------------------- reading


def _wrong(words: Sequence[str]) -> str:
    """Return what is wrong with the words of a question, or an empty string."""
    if len(words) != 4:
        return f"holds {len(words)} words, expected 4"
    return "has its answer among the words of the question" if words[3] in words[:3] else ""


def _given_question(row: Sequence[str]) -> Question:
    words = () if isinstance(row, str) else tuple(row)
    if not all(isinstance(word, str) and word for word in words) or _wrong(words):
        raise InputError(f"received the analogy {reprlib.repr(row)}, expected four words (a, b, c, d), d a new one")
    a, b, c, d = words
    return a, b, c, d


def _nothing_covered(aligned: AlignedSpaces, given: AnalogyQuestions, where: Where, counts: Mapping[Where, int]) -> str:
    lowered = [(a.lower(), b.lower(), c.lower(), d.lower()) for a, b, c, d in given]
    in_lower_case = int((_rows(aligned, lowered, where)[:, 0] >= 0).sum())
    examples = ", ".join(repr(" ".join(question)) for question in list(given)[:2])
    what = f"{len(given):,} questions of {given.source or 'the user'} ({examples})"
    return nothing_covered(aligned, what, where, counts, in_lower_case)


# --------------------------------------------------------------------------- answering


def _rows(aligned: AlignedSpaces, questions: Iterable[Question], where: Where) -> Ints:
    """Return the rows (q, 4) of the words of each question, all -1 for an uncovered question."""
    one, other = (getattr(aligned, side).index for side in sides_of(where))
    indexes = (one, one, other, other)
    found = [[index.get(word, -1) for index, word in zip(indexes, each, strict=True)] for each in questions]
    rows = np.array(found, dtype=np.int64).reshape(-1, 4)
    rows[(rows < 0).any(axis=1)] = -1
    return rows


def _right(aligned: AlignedSpaces, where: Where, rows: Ints) -> Floats:
    """Return 1 for each question of rows (q, 4) whose best answer is right, by each scoring, (q, 2)."""
    vectors = dict(zip(("src", "tgt"), mapped_sides(aligned), strict=True))
    one, keys = (vectors[side] for side in sides_of(where))
    # The words of the question that are in the language of the answer, and so among the candidates.
    asked = rows[:, :3] if where != "cross" else rows[:, 2:3]

    def block(part: slice) -> Floats:
        a, b = (_similarities(one, keys, rows[part, column]) for column in (0, 1))
        c = _similarities(keys, keys, rows[part, 2])
        add = b - a + c
        mul = (1.0 + b) * (1.0 + c) / (1.0 + a + 2.0 * _EPSILON)
        return np.stack([_best(scores, rows[part, 3], asked[part]) for scores in (add, mul)], axis=1)

    size = max(1, arrays.block_rows(keys.shape[0], keys) // 4)
    return np.concatenate(arrays.map_blocks(block, len(rows), size, keys))


def _similarities(queries: Array, keys: Array, rows: Ints) -> Array:
    """Return the cosines (b, m) of rows (b,) of the queries with all keys. Repeated rows are computed once."""
    xp = arrays.namespace(keys)
    different, which = np.unique(rows, return_inverse=True)
    found = xp.take(queries, arrays.asarray(different, keys), axis=0) @ keys.T
    return xp.take(found, arrays.asarray(which.reshape(-1), keys), axis=0)


def _best(scores: Array, answers: Ints, asked: Ints) -> Floats:
    """Return 1 if the answer (b,) has a higher score (b, m) than all words outside the question (b, w)."""
    xp = arrays.namespace(scores)
    answer = xp.take_along_axis(scores, arrays.asarray(answers[:, None], scores), axis=1)
    at_least = arrays.to_numpy(xp.count_nonzero(scores >= answer, axis=1))
    of_asked = arrays.to_numpy(xp.take_along_axis(scores, arrays.asarray(asked, scores), axis=1))
    # A word that occurs twice in the question is one candidate.
    first = np.stack([(asked[:, :k] != asked[:, k : k + 1]).all(axis=1) for k in range(asked.shape[1])], axis=1)
    others = at_least - ((of_asked >= arrays.to_numpy(answer)) & first).sum(axis=1)
    return np.asarray(others == 1, dtype=np.float64)


def _scores(name: str, right: Floats, covered: Any, bootstrap: int, key: tuple[int, int]) -> SectionScores:
    """Return accuracies with their intervals. right: (q, 2), zero if not covered (q,)."""
    seed, number = key

    def measured(rows: Floats, stream: int) -> dict[str, Score]:
        if len(rows) == 0:
            return {}
        found = ratios(rows, np.ones_like(rows), bootstrap, arrays.rng(seed, Stream.BOOTSTRAP, 3, number + stream))
        columns = zip(SCORINGS, *found, strict=True)
        return {scoring: Score(float(v), float(low), float(high)) for scoring, v, low, high in columns}

    return SectionScores(name, len(right), int(covered.sum()), measured(right[covered], 0), measured(right, 1))
