"""What the pages show, as plain JSON types: functions of an alignment that is being explored, and of what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qwp.errors import InputError
from qwp.explore.findings import HUB, REASONS, Findings
from qwp.explore.opened import Explored, folded, other
from qwp.results.summary import recorded
from qwp.results.translator import WordQuery
from qwp.search import confidence
from qwp.search.confidence import CANDIDATES, Found
from qwp.spaces.embeddings import SIDES, FloatArray, Side
from qwp.spaces.frequency import Ints

Json = dict[str, Any]

# Nearest words of the same language that are shown, and words that a translation leads back to.
_NEIGHBOURS = 10
_BACK = 3
# A map tells places apart as finely as this: more digits are no use on any screen.
_GRID = 20_000


def overview(explored: Sequence[Explored]) -> Json:
    """What is being explored: one entry for each alignment."""
    return {"alignments": [_about(number, each) for number, each in enumerate(explored)]}


def _about(number: int, each: Explored) -> Json:
    alignment = each.alignment
    return {
        "id": number,
        "name": each.name,
        "languages": {side: alignment.side(side).space.name for side in SIDES},
        "words": {side: len(alignment.side(side).space) for side in SIDES},
        "dim": alignment.src.dim,
        "method": alignment.provenance.method,
        "verdict": alignment.quality.verdict,
        "short": alignment.quality.short,
        "lexicon": None if each.lexicon is None else len(each.lexicon),
        "marks": each.corrections.counts(),
        "folder": str(each.folder),
    }


def completion(explored: Explored, side: Side, start: str, n: int) -> Json:
    """Words that begin like this."""
    return {"words": explored.completed(side, start, n)}


# --------------------------------------------------------------------------- one word


@dataclass(frozen=True)
class _Candidates:
    """The k best words of the other side for one word.

    rows (k,); cosines, scores (k,): with the word, CSLS best first; all_cosines, all_scores: of all words of the other
    side; back (k, n): CSLS of each candidate with all words of the own side; own: the hubness term of the word.
    """

    rows: Ints
    cosines: FloatArray
    scores: FloatArray
    all_cosines: FloatArray
    all_scores: FloatArray
    back: FloatArray
    own: float


def word(explored: Explored, side: Side, asked: str, k: int) -> Json:
    """All about one word: its translations and why they are in this order, ways back, neighbours, the gold answer."""
    row = explored.row(side, asked)
    if row is None:
        return _unknown(explored, side, asked)
    found = _candidates(explored, side, row, k)
    chances = _chances(explored, side, row, found)
    translations = [
        _translation(explored, side, (asked, row), found, place, chance) for place, chance in enumerate(chances)
    ]
    return {
        "known": True,
        "word": asked,
        "side": side,
        "rank": int(explored.ranks(side)[row]),
        "hubness": found.own,
        "translations": translations,
        "gold": _gold(explored, side, asked, found),
        "neighbours": _neighbours(explored, side, row, int(found.rows[0])),
    }


def _unknown(explored: Explored, side: Side, asked: str) -> Json:
    vocabulary = explored.alignment.side(side).space
    hints = list(WordQuery.of([asked], vocabulary).hints.values())
    near = explored.completed(side, asked, 5)
    there = explored.row(other(side), asked) is not None
    return {
        "known": False,
        "word": asked,
        "side": side,
        "message": f"{asked!r} is not among the {len(vocabulary):,} words of {vocabulary.name}",
        "hints": list(dict.fromkeys([*hints, *near])),
        "other_side": there,
    }


def _candidates(explored: Explored, side: Side, row: int, k: int) -> _Candidates:
    own_side, other_side = explored.unit(side), explored.unit(other(side))
    own_hubs, other_hubs = explored.hubs(side), explored.hubs(other(side))
    cosines = other_side @ own_side[row]
    scores = 2.0 * cosines - other_hubs - own_hubs[row]
    rows = _best(scores, k)
    back = 2.0 * (other_side[rows] @ own_side.T) - own_hubs - other_hubs[rows][:, None]
    return _Candidates(rows, cosines[rows], scores[rows], cosines, scores, back, float(own_hubs[row]))


def _best(scores: FloatArray, k: int) -> Ints:
    """The places of the k best of scores (n,), best first."""
    k = min(k, len(scores))
    some = np.argpartition(-scores, k - 1)[:k]
    return np.asarray(some[np.argsort(-scores[some], kind="stable")], dtype=np.int64)


def _chances(explored: Explored, side: Side, row: int, found: _Candidates) -> list[float]:
    """The confidence of each candidate. It is that of the pair: the same whichever of its words was asked for."""
    best, counted = _best(found.all_scores, CANDIDATES + 1), CANDIDATES
    forward, ranks, others, src_rows, tgt_rows = [], [], [], [], []
    for place, candidate in enumerate(found.rows.tolist()):
        score, ways = float(found.scores[place]), found.back[place]
        # The other candidates of either word, without the pair itself.
        of_word = [each for each in best.tolist() if each != candidate]
        of_candidate = [each for each in _best(ways, CANDIDATES + 1).tolist() if each != row]
        word_scores, candidate_scores = found.all_scores[of_word].tolist(), ways[of_candidate].tolist()
        if side == "src":
            pair, from_src, src_scores, from_tgt = (row, candidate), of_word, word_scores, candidate_scores
        else:
            pair, from_src, src_scores, from_tgt = (candidate, row), of_candidate, candidate_scores, word_scores
        forward.append([score, *src_scores[: counted - 1]])
        ranks.append(min(sum(value > score for value in from_tgt), counted))
        others.append(from_tgt[0] if from_tgt else -np.inf)
        src_rows.append(pair[0])
        tgt_rows.append([pair[1], *from_src[: counted - 1]])
    preferred = explored.preferred(np.array(src_rows), np.array(tgt_rows))
    odds = confidence.confidence(Found(forward, ranks, others, preferred), explored.alignment.estimate.scale)
    return [float(chance) for chance in odds]


def _translation(
    explored: Explored, side: Side, asked: tuple[str, int], found: _Candidates, place: int, chance: float
) -> Json:
    name, row = asked
    candidate, ways = int(found.rows[place]), found.back[place]
    answer = explored.words(other(side))[candidate]
    src, tgt = (name, answer) if side == "src" else (answer, name)
    own_words = explored.words(side)
    return {
        "word": answer,
        "confidence": chance,
        "score": float(found.scores[place]),
        "cosine": float(found.cosines[place]),
        "hubness": float(explored.hubs(other(side))[candidate]),
        "cosine_rank": 1 + int(np.count_nonzero(found.all_cosines > found.cosines[place])),
        "back_rank": 1 + int(np.count_nonzero(ways > ways[row])),
        "back": [{"word": own_words[each], "score": float(ways[each])} for each in _best(ways, _BACK).tolist()],
        "rank": int(explored.ranks(other(side))[candidate]),
        "right": explored.right(side, name, answer),
        "mark": explored.corrections.get(src, tgt),
    }


def _gold(explored: Explored, side: Side, asked: str, found: _Candidates) -> list[Json] | None:
    """The answers of the lexicon and how high each came; None where it does not have the word."""
    answers = explored.gold[side].get(asked)
    if answers is None:
        return None
    rows = [(answer, explored.row(other(side), answer)) for answer in answers]
    return [
        {
            "word": answer,
            "rank": None if row is None else 1 + int(np.count_nonzero(found.all_scores > found.all_scores[row])),
            "cosine": None if row is None else float(found.all_cosines[row]),
        }
        for answer, row in rows
    ]


def _neighbours(explored: Explored, side: Side, row: int, best: int) -> Json:
    """The nearest words of the same language, and those around its translation; which of them are translations."""
    own, partners = _nearest(explored, side, row), _nearest(explored, other(side), best)
    own_side, other_side = explored.unit(side), explored.unit(other(side))
    translated = [int(np.argmax(2.0 * (other_side @ own_side[each]) - explored.hubs(other(side)))) for each, _ in own]
    around = {each for each, _ in partners} | {best}
    own_words, other_words = explored.words(side), explored.words(other(side))
    shared = {each for each in translated if each in around}
    return {
        "own": [
            {"word": own_words[each], "cosine": cosine, "translation": other_words[way], "shared": way in around}
            for (each, cosine), way in zip(own, translated, strict=True)
        ],
        "other": [{"word": other_words[each], "cosine": cosine, "shared": each in shared} for each, cosine in partners],
        "overlap": sum(way in around for way in translated) / max(1, len(translated)),
    }


def _nearest(explored: Explored, side: Side, row: int) -> list[tuple[int, float]]:
    """The nearest words of the same side and their cosines, without the word itself."""
    unit = explored.unit(side)
    cosines = unit @ unit[row]
    nearest = [each for each in _best(cosines, _NEIGHBOURS + 1).tolist() if each != row][:_NEIGHBOURS]
    return [(each, float(cosines[each])) for each in nearest]


# --------------------------------------------------------------------------- the table

MOST_RANK = 10**9
SORTS = ("frequency", "confidence", "score", "margin", "hub", "overlap", "suspicion", "src", "tgt", "tgt_rank")
RIGHTS = ("any", "right", "wrong", "unknown")
MUTUALS = ("any", "yes", "no")
MARKED = ("any", "right", "wrong", "none")
SUSPECTS = ("any", "some", *REASONS)


@dataclass(frozen=True)
class TableQuery:
    """Which pairs of the induced lexicon are asked for, and in which order."""

    sort: str = "frequency"
    descending: bool = False
    text: str = ""
    least: float = 0.0
    most: float = 1.0
    first: int = 1
    last: int = MOST_RANK
    right: str = "any"
    mutual: str = "any"
    mark: str = "any"
    suspect: str = "any"
    offset: int = 0
    limit: int = 50


def table(explored: Explored, findings: Findings, query: TableQuery) -> Json:
    """Some pairs of the induced lexicon, and how many there are in all that fit."""
    rows = _Rows(explored, findings)
    places = rows.chosen(query)
    page = places[query.offset : query.offset + query.limit]
    return {
        "total": len(places),
        "all": len(findings.best),
        "offset": query.offset,
        "rows": [rows.shown(place) for place in page.tolist()],
        "marks": explored.corrections.counts(),
    }


def pairs_tsv(explored: Explored, findings: Findings, query: TableQuery) -> str:
    """The pairs that fit as lines of text with a header. Words that would break a line are left out."""
    rows = _Rows(explored, findings)
    columns = ("src", "tgt", "confidence", "score", "margin", "mutual", "src_rank", "right", "mark")
    lines = ["\t".join(columns)]
    for place in rows.chosen(query).tolist():
        shown = rows.shown(place)
        if not set("\t\n\r") & set(shown["src"] + shown["tgt"]):
            lines.append("\t".join(_cell(shown[column]) for column in columns))
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


class _Rows:
    """The pairs of the induced lexicon, by the position of their source word."""

    def __init__(self, explored: Explored, findings: Findings) -> None:
        self.explored, self.findings = explored, findings
        src, tgt = explored.words("src"), explored.words("tgt")
        self.src = [src[row] for row in findings.src_rows.tolist()]
        self.tgt = [tgt[row] for row in findings.best.tolist()]

    def chosen(self, query: TableQuery) -> Ints:
        """The positions of the pairs that fit, in order."""
        kept = np.flatnonzero(self._numbers_fit(query))
        if query.text:
            wanted = folded(query.text)
            fits = [wanted in folded(self.src[at]) or wanted in folded(self.tgt[at]) for at in kept.tolist()]
            kept = kept[np.array(fits, dtype=bool)]
        if query.right != "any":
            value = {"right": True, "wrong": False, "unknown": None}[query.right]
            judged = self.explored.judged([self.src[at] for at in kept], [self.tgt[at] for at in kept])
            kept = kept[np.array([each is value for each in judged], dtype=bool)]
        if query.mark != "any":
            value_of = {"right": "right", "wrong": "wrong", "none": None}[query.mark]
            marks = [self.explored.corrections.get(self.src[at], self.tgt[at]) for at in kept.tolist()]
            kept = kept[np.array([mark == value_of for mark in marks], dtype=bool)]
        return self._sorted(kept, query)

    def _numbers_fit(self, query: TableQuery) -> np.ndarray:
        found = self.findings
        fits = (found.chance >= query.least) & (found.chance <= query.most)
        ranks = np.arange(1, len(fits) + 1)
        fits = fits & (ranks >= query.first) & (ranks <= query.last)
        if query.mutual != "any":
            fits = fits & (found.mutual == (query.mutual == "yes"))
        if query.suspect == "some":
            fits = fits & found.suspects.any(axis=1)
        elif query.suspect != "any":
            fits = fits & found.suspects[:, REASONS.index(query.suspect)]
        return np.asarray(fits)

    def _sorted(self, kept: Ints, query: TableQuery) -> Ints:
        found = self.findings
        if query.sort in ("src", "tgt"):
            words = self.src if query.sort == "src" else self.tgt
            by_word = sorted(kept.tolist(), key=lambda at: folded(words[at]), reverse=query.descending)
            return np.array(by_word, dtype=np.int64)
        values: dict[str, Any] = {
            "frequency": lambda: kept,
            "confidence": lambda: found.chance[kept],
            "score": lambda: found.score[kept],
            "margin": lambda: found.margin[kept],
            "hub": lambda: found.hubness[kept],
            "overlap": lambda: found.overlap[kept],
            "suspicion": lambda: found.suspects[kept].sum(axis=1) + (1.0 - found.chance[kept]),
            "tgt_rank": lambda: self.explored.ranks("tgt")[found.best[kept]],
        }
        keys = values[query.sort]()
        return kept[np.argsort(-keys if query.descending else keys, kind="stable")]

    def shown(self, at: int) -> Json:
        """One pair."""
        found, src, tgt = self.findings, self.src[at], self.tgt[at]
        return {
            "src": src,
            "tgt": tgt,
            "confidence": float(found.chance[at]),
            "score": float(found.score[at]),
            "margin": float(found.margin[at]),
            "mutual": bool(found.mutual[at]),
            "src_rank": at + 1,
            "tgt_rank": int(self.explored.ranks("tgt")[found.best[at]]),
            "hub": int(found.hubness[at]),
            "overlap": float(found.overlap[at]),
            "right": self.explored.right("src", src, tgt),
            "mark": self.explored.corrections.get(src, tgt),
            "reasons": [name for name, holds in zip(REASONS, found.suspects[at].tolist(), strict=True) if holds],
        }


# --------------------------------------------------------------------------- the map


def points(explored: Explored, findings: Findings, plane: Mapping[Side, FloatArray]) -> Json:
    """All words with their places on the map, as lists that stand side by side.

    x, y: whole numbers from 0 to `grid`. partner: the position of the best word of the other side, -1 where it is not
    on the map. chosen: how many words of the other side have it as their best. confidence, in percent, and right are
    those of the pair: of a target word those of its best source word, where these are each other's best.
    """
    judged = explored.judged(_names(explored, "src", findings.src_rows), _names(explored, "tgt", findings.best))
    right = np.array([{None: 0, True: 1, False: 2}[each] for each in judged], dtype=np.int64)
    chance = np.round(100 * findings.chance).astype(np.int64)
    mutual = np.zeros(len(findings.tgt_rows), dtype=bool)
    known = findings.back_places >= 0
    mutual[known] = findings.mutual[findings.back_places[known]] & (
        findings.best_places[findings.back_places[known]] == np.flatnonzero(known)
    )
    partner = np.maximum(findings.back_places, 0)
    return {
        "grid": _GRID,
        "hub": HUB,
        "src": {
            **_places(explored, findings, plane, "src"),
            "partner": findings.best_places.tolist(),
            "mutual": findings.mutual.astype(int).tolist(),
            "chosen": findings.src_chosen.tolist(),
            "confidence": chance.tolist(),
            "right": right.tolist(),
        },
        "tgt": {
            **_places(explored, findings, plane, "tgt"),
            "partner": findings.back_places.tolist(),
            "mutual": mutual.astype(int).tolist(),
            "chosen": findings.tgt_chosen.tolist(),
            "confidence": np.where(mutual, chance[partner], -1).tolist(),
            "right": np.where(mutual, right[partner], 0).tolist(),
        },
    }


def _names(explored: Explored, side: Side, rows: Ints) -> list[str]:
    words = explored.words(side)
    return [words[row] for row in rows.tolist()]


def _places(explored: Explored, findings: Findings, plane: Mapping[Side, FloatArray], side: Side) -> Json:
    whole = np.round(np.clip(plane[side], 0.0, 1.0) * _GRID).astype(np.int64)
    return {
        "name": explored.alignment.side(side).space.name,
        "words": _names(explored, side, findings.rows(side)),
        "x": whole[:, 0].tolist(),
        "y": whole[:, 1].tolist(),
    }


# --------------------------------------------------------------------------- what it is worth, and where it came from


def about(explored: Explored) -> Json:
    """Verdict, estimate, what was measured on the way, and provenance."""
    alignment = explored.alignment
    return {
        "quality": alignment.quality.to_dict(),
        "explanation": alignment.quality.explanation,
        "curves": curves(alignment.history),
        "provenance": alignment.provenance.to_dict(),
        "scores": scores(explored),
    }


# The stages whose curves the page shows.
_SHOWN_STAGES = ("initialize", "loop", "refine")


def curves(history: Sequence[Mapping[str, Any]]) -> list[Json]:
    """The curves that the records of a run hold."""
    return [
        {"title": each.title, "x_label": each.x_label, "y_label": each.y_label, "x": each.x, "y": each.y}
        for each in recorded(history)
        if each.stage in _SHOWN_STAGES
    ]


def scores(explored: Explored) -> Json | None:
    """P@1 by CSLS against the lexicon, over its covered source words; None without a lexicon."""
    if explored.lexicon is None:
        return None
    words = [word for word in explored.gold["src"] if explored.row("src", word) is not None]
    covered = [word for word in words if _covered(explored, word)]
    answers = best_answers(explored, covered)
    hits = sum(answer in explored.gold["src"][word] for word, answer in zip(covered, answers, strict=True))
    share = hits / len(covered) if covered else None
    return {"p_at_1": share, "covered": len(covered), "source_words": len(explored.gold["src"])}


def best_answers(explored: Explored, words: Sequence[str]) -> list[str]:
    """The best translation of each source word, all of which are there."""
    if not words:
        return []
    found = explored.alignment.translate(list(words), k=1)
    return [found[word][0].word for word in words]


# --------------------------------------------------------------------------- two alignments

SHOWN = ("different", "same", "all", "first", "second")
"""Words whose translations differ, are the same, all, and those that only the first or only the second has right."""


@dataclass(frozen=True)
class CompareQuery:
    """Which words of two alignments are asked for."""

    shown: str = "different"
    text: str = ""
    offset: int = 0
    limit: int = 50


def comparison(first: Explored, second: Explored, found: tuple[Findings, Findings], query: CompareQuery) -> Json:
    """The translations of the same words by two alignments."""
    rows = [_Rows(each, findings) for each, findings in zip((first, second), found, strict=True)]
    at_second = {word: at for at, word in enumerate(rows[1].src)}
    both = [(at, at_second[word]) for at, word in enumerate(rows[0].src) if word in at_second]
    if not both:
        raise InputError(
            f"{first.name} and {second.name} have no source word in common, expected alignments of the same languages"
        )
    words = [rows[0].src[a] for a, _ in both]
    answers = [[rows[number].tgt[pair[number]] for pair in both] for number in (0, 1)]
    judged = [each.judged(words, given) for each, given in zip((first, second), answers, strict=True)]
    covered = [all(_covered(each, word) for each in (first, second)) for word in words]
    kept = _kept(words, answers, judged, query)
    return {
        "names": [first.name, second.name],
        "words": len(both),
        "same": sum(a == b for a, b in zip(*answers, strict=True)),
        "right": [_right(each, covered) for each in judged],
        "total": len(kept),
        "offset": query.offset,
        "rows": [
            [rows[number].shown(both[at][number]) for number in (0, 1)]
            for at in kept[query.offset : query.offset + query.limit]
        ],
    }


def _kept(
    words: Sequence[str], answers: Sequence[Sequence[str]], judged: Sequence[Sequence[bool | None]], query: CompareQuery
) -> list[int]:
    """The positions of the words that are asked for."""
    fits: dict[str, Callable[[int], bool]] = {
        "all": lambda at: True,
        "same": lambda at: answers[0][at] == answers[1][at],
        "different": lambda at: answers[0][at] != answers[1][at],
        "first": lambda at: judged[0][at] is True and judged[1][at] is not True,
        "second": lambda at: judged[1][at] is True and judged[0][at] is not True,
    }
    wanted, is_shown = folded(query.text), fits[query.shown]
    return [
        at
        for at, word in enumerate(words)
        if is_shown(at)
        and (not wanted or any(wanted in folded(text) for text in (word, answers[0][at], answers[1][at])))
    ]


def _covered(explored: Explored, word: str) -> bool:
    """Whether the lexicon has a translation of a source word that could be found."""
    return any(explored.row("tgt", answer) is not None for answer in explored.gold["src"].get(word, ()))


def _right(judged: Sequence[bool | None], covered: Sequence[bool]) -> Json | None:
    known = [bool(each) for each, counts in zip(judged, covered, strict=True) if counts]
    return {"right": sum(known), "of": len(known)} if known else None
