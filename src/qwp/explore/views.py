"""The content of the pages in plain JSON types: one word, the table, the map, the verdict, two alignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from qwp import arrays
from qwp.arrays import AnyFloats, Ints
from qwp.errors import InputError
from qwp.explore.pairs import REASONS, PairTable
from qwp.explore.workspace import Workspace
from qwp.results.summary import recorded
from qwp.results.translator import WordQuery
from qwp.search.confidence import CONFIDENCE_MODEL, SearchFigures
from qwp.search.spelling import folded
from qwp.spaces.embeddings import SIDES, Side, other

Json = dict[str, Any]

# Neighbours of a word, and back-translations of each translation.
_NEIGHBOURS = 10
_BACK = 3
# Resolution of the map: finer positions are not visible on any screen.
_GRID = 20_000
# A pair is near on the map if each word is among this number of nearest words of the other.
_AMONG = 10
# Characters of a text on the map.
_MAP_TEXT = 120


def overview(workspaces: Sequence[Workspace]) -> Json:
    """Return an entry for each alignment."""
    return {"alignments": [_about(number, each) for number, each in enumerate(workspaces)]}


def _about(number: int, each: Workspace) -> Json:
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
        "noun": each.noun,
        "categories": each.items["src"].categories(),
    }


def _texts(workspace: Workspace, names: Mapping[Side, Iterable[str]]) -> Json:
    """Return the texts of the items that an answer names, by side; items without a text are left out."""
    return {
        side: {name: known[name] for name in dict.fromkeys(names[side]) if name in known}
        for side, known in ((side, workspace.items[side].texts) for side in SIDES)
    }


def completion(workspace: Workspace, side: Side, start: str, n: int) -> Json:
    """Return words that begin like `start`."""
    words = workspace.completed(side, start, n)
    return {"words": words, "texts": _texts(workspace, {side: words, other(side): []})}


# --------------------------------------------------------------------------- one word


@dataclass(frozen=True)
class _Candidates:
    """The k best words of the other side for one word.

    Attributes:
        rows: their rows, the accepted answer and then the best first (k,).
        pinned: whether the first is the accepted answer.
        cosines, scores: their cosine and CSLS with the word (k,).
        all_cosines, all_scores: the same for all words of the other side.
        back: CSLS of each candidate with all words of the own side (k, n).
        own: CSLS neighbourhood mean of the word.
    """

    rows: Ints
    pinned: bool
    cosines: AnyFloats
    scores: AnyFloats
    all_cosines: AnyFloats
    all_scores: AnyFloats
    back: AnyFloats
    own: float


def word(workspace: Workspace, side: Side, query_word: str, k: int) -> Json:
    """Return the translations of a word with the terms of their scores, back-translations, neighbours and gold."""
    row = workspace.row(side, query_word)
    if row is None:
        return _unknown(workspace, side, query_word)
    pin = workspace.pins(side).get(query_word)
    found = _candidates(workspace, side, row, k, None if pin is None else workspace.row(other(side), pin))
    confidences = _confidences(workspace, side, row, found)
    translations = [
        _translation(workspace, side, (query_word, row), found, rank, probability)
        for rank, probability in enumerate(confidences)
    ]
    near = _neighbours(workspace, side, row, int(found.rows[0]))
    answers = workspace.gold[side].get(query_word, ())
    own = [query_word, *(back["word"] for each in translations for back in each["back"])]
    others = [*(each["word"] for each in translations), *(each["translation"] for each in near["own"]), *answers]
    return {
        "known": True,
        "texts": _texts(
            workspace,
            {
                side: own + [each["word"] for each in near["own"]],
                other(side): others + [each["word"] for each in near["other"]],
            },
        ),
        "metadata": workspace.items[side].metadata.get(query_word, {}),
        "word": query_word,
        "side": side,
        "rank": int(workspace.ranks(side)[row]),
        "hubness": found.own,
        "translations": translations,
        "pinned": found.pinned,
        "gold": _gold(workspace, side, query_word, found),
        "neighbours": near,
    }


def _unknown(workspace: Workspace, side: Side, query_word: str) -> Json:
    vocabulary = workspace.alignment.side(side).space
    hints = list(WordQuery.of([query_word], vocabulary).hints.values())
    near = workspace.completed(side, query_word, 5)
    in_other = workspace.row(other(side), query_word) is not None
    return {
        "known": False,
        "word": query_word,
        "side": side,
        "message": f"{query_word!r} is not among the {len(vocabulary):,} words of {vocabulary.name}",
        "hints": list(dict.fromkeys([*hints, *near])),
        "other_side": in_other,
    }


def _candidates(workspace: Workspace, side: Side, row: int, k: int, pinned: int | None) -> _Candidates:
    own_side, other_side = workspace.unit(side), workspace.unit(other(side))
    own_hubs, other_hubs = workspace.hubs(side), workspace.hubs(other(side))
    cosines = other_side @ own_side[row]
    scores = 2.0 * cosines - other_hubs - own_hubs[row]
    rows = _best(scores, k)
    if pinned is not None:
        rows = np.concatenate([[pinned], rows[rows != pinned]])[: max(k, 1)]
    back = 2.0 * (other_side[rows] @ own_side.T) - own_hubs - other_hubs[rows][:, None]
    return _Candidates(
        rows, pinned is not None, cosines[rows], scores[rows], cosines, scores, back, float(own_hubs[row])
    )


def _best(scores: AnyFloats, k: int) -> Ints:
    """Return the indices of the k best of scores (n,), best first."""
    best: Ints = arrays.to_numpy(arrays.top_k(scores[None, :], k)[1])[0]
    return best


def _confidences(workspace: Workspace, side: Side, row: int, found: _Candidates) -> list[float]:
    """Return the confidence of each candidate: that of the pair, whichever of its words the user asked for."""
    best, counted = _best(found.all_scores, CONFIDENCE_MODEL.candidates + 1), CONFIDENCE_MODEL.candidates
    forward, ranks, others, src_rows, tgt_rows = [], [], [], [], []
    for rank, candidate in enumerate(found.rows.tolist()):
        score, back_scores = float(found.scores[rank]), found.back[rank]
        # The other candidates of either word, without the pair itself.
        of_word = [each for each in best.tolist() if each != candidate]
        of_candidate = [each for each in _best(back_scores, CONFIDENCE_MODEL.candidates + 1).tolist() if each != row]
        word_scores, candidate_scores = found.all_scores[of_word].tolist(), back_scores[of_candidate].tolist()
        if side == "src":
            pair, from_src, src_scores, from_tgt = (row, candidate), of_word, word_scores, candidate_scores
        else:
            pair, from_src, src_scores, from_tgt = (candidate, row), of_candidate, candidate_scores, word_scores
        forward.append([score, *src_scores[: counted - 1]])
        ranks.append(min(sum(value > score for value in from_tgt), counted))
        others.append(from_tgt[0] if from_tgt else -np.inf)
        src_rows.append(pair[0])
        tgt_rows.append([pair[1], *from_src[: counted - 1]])
    preferred = workspace.preferred(np.array(src_rows), np.array(tgt_rows))
    figures = SearchFigures(forward, ranks, others, preferred)
    probabilities = CONFIDENCE_MODEL.confidence(figures, workspace.alignment.estimate.scale)
    return [1.0 if found.pinned and rank == 0 else float(value) for rank, value in enumerate(probabilities)]


def _translation(
    workspace: Workspace, side: Side, query_word: tuple[str, int], found: _Candidates, rank: int, probability: float
) -> Json:
    name, row = query_word
    candidate, back_scores = int(found.rows[rank]), found.back[rank]
    answer = workspace.words(other(side))[candidate]
    src, tgt = (name, answer) if side == "src" else (answer, name)
    own_words = workspace.words(side)
    return {
        "word": answer,
        "confidence": probability,
        "score": float(found.scores[rank]),
        "cosine": float(found.cosines[rank]),
        "hubness": float(workspace.hubs(other(side))[candidate]),
        "csls_rank": 1 + int(np.count_nonzero(found.all_scores > found.scores[rank])),
        "cosine_rank": 1 + int(np.count_nonzero(found.all_cosines > found.cosines[rank])),
        "back_rank": 1 + int(np.count_nonzero(back_scores > back_scores[row])),
        "back": [
            {"word": own_words[each], "score": float(back_scores[each])} for each in _best(back_scores, _BACK).tolist()
        ],
        "rank": int(workspace.ranks(other(side))[candidate]),
        "right": workspace.right(side, name, answer),
        "mark": workspace.corrections.get(src, tgt),
    }


def _gold(workspace: Workspace, side: Side, query_word: str, found: _Candidates) -> list[Json] | None:
    """Return the gold translations with their ranks; None if the lexicon does not have the word."""
    answers = workspace.gold[side].get(query_word)
    if answers is None:
        return None
    rows = [(answer, workspace.row(other(side), answer)) for answer in answers]
    return [
        {
            "word": answer,
            "rank": None if row is None else 1 + int(np.count_nonzero(found.all_scores > found.all_scores[row])),
            "cosine": None if row is None else float(found.all_cosines[row]),
        }
        for answer, row in rows
    ]


def _neighbours(workspace: Workspace, side: Side, row: int, best: int) -> Json:
    """Return the neighbours of a word and of its translation, and which of them translate into each other."""
    own, partners = _nearest(workspace, side, row), _nearest(workspace, other(side), best)
    own_side, other_side = workspace.unit(side), workspace.unit(other(side))
    translated = [int(np.argmax(2.0 * (other_side @ own_side[each]) - workspace.hubs(other(side)))) for each, _ in own]
    around = {each for each, _ in partners} | {best}
    own_words, other_words = workspace.words(side), workspace.words(other(side))
    shared = {each for each in translated if each in around}
    return {
        "own": [
            {
                "word": own_words[each],
                "cosine": cosine,
                "translation": other_words[translation],
                "shared": translation in around,
            }
            for (each, cosine), translation in zip(own, translated, strict=True)
        ],
        "other": [{"word": other_words[each], "cosine": cosine, "shared": each in shared} for each, cosine in partners],
        "overlap": sum(answer in around for answer in translated) / max(1, len(translated)),
    }


def _nearest(workspace: Workspace, side: Side, row: int) -> list[tuple[int, float]]:
    """Return the nearest words of the same side with their cosines, without the word itself."""
    unit = workspace.unit(side)
    cosines = unit @ unit[row]
    nearest = [each for each in _best(cosines, _NEIGHBOURS + 1).tolist() if each != row][:_NEIGHBOURS]
    return [(each, float(cosines[each])) for each in nearest]


# --------------------------------------------------------------------------- the table

MAX_RANK = 10**9
SORTS = ("frequency", "confidence", "score", "margin", "hub", "overlap", "suspicion", "src", "tgt", "tgt_rank")
RIGHTS = ("any", "right", "wrong", "unknown")
MUTUALS = ("any", "yes", "no")
MARKED = ("any", "right", "wrong", "none")
SUSPECTS = ("any", "some", *REASONS)


@dataclass(frozen=True)
class TableQuery:
    """Filter, order and page of the table of pairs. top: how many of the most suspicious pairs to show, 0 for all.
    column, value: only source items with this value in this column of their metadata."""

    sort: str = "frequency"
    descending: bool = False
    text: str = ""
    least: float = 0.0
    most: float = 1.0
    first: int = 1
    last: int = MAX_RANK
    right: str = "any"
    mutual: str = "any"
    mark: str = "any"
    suspect: str = "any"
    top: int = 0
    column: str = ""
    value: str = ""
    offset: int = 0
    limit: int = 50


def table(workspace: Workspace, pairs: PairTable, query: TableQuery) -> Json:
    """Return a page of the pairs that match, and the number of all matches."""
    rows = _Rows(workspace, pairs)
    matching = rows.matching(query)
    positions = rows.shortlisted(matching, query)
    page = positions[query.offset : query.offset + query.limit]
    shown = [rows.shown(rank) for rank in page.tolist()]
    return {
        "texts": _texts(workspace, {side: [row[side] for row in shown] for side in SIDES}),
        "total": len(positions),
        "matching": len(matching),
        "all": len(pairs.best),
        "offset": query.offset,
        "rows": shown,
        "marks": {**workspace.corrections.counts(), "undoable": workspace.corrections.undoable},
    }


def pairs_tsv(workspace: Workspace, pairs: PairTable, query: TableQuery) -> str:
    """Return the pairs that match as TSV with a header, without words that would break a line."""
    rows = _Rows(workspace, pairs)
    columns = ("src", "tgt", "confidence", "score", "margin", "mutual", "src_rank", "right", "mark")
    lines = ["\t".join(columns)]
    for rank in rows.shortlisted(rows.matching(query), query).tolist():
        shown = rows.shown(rank)
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
    """The pairs as rows of the table, by the position of their source word."""

    def __init__(self, workspace: Workspace, pairs: PairTable) -> None:
        self.workspace, self.pairs = workspace, pairs
        src, tgt = workspace.words("src"), workspace.words("tgt")
        self.src = [src[row] for row in pairs.src_rows.tolist()]
        self.tgt = [tgt[row] for row in pairs.best.tolist()]

    def matching(self, query: TableQuery) -> Ints:
        """Return the positions of the pairs that match, in order."""
        matches = np.flatnonzero(self._numbers_fit(query))
        if query.text:
            wanted = folded(query.text)
            text = self.workspace.text
            fits = [
                any(wanted in folded(text(side, words[at])) for side, words in self._sides()) for at in matches.tolist()
            ]
            matches = matches[np.array(fits, dtype=bool)]
        if query.column:
            metadata = self.workspace.items["src"].metadata
            has = [metadata.get(self.src[at], {}).get(query.column) == query.value for at in matches.tolist()]
            matches = matches[np.array(has, dtype=bool)]
        if query.right != "any":
            value = {"right": True, "wrong": False, "unknown": None}[query.right]
            judged = self.workspace.judged([self.src[at] for at in matches], [self.tgt[at] for at in matches])
            matches = matches[np.array([each is value for each in judged], dtype=bool)]
        if query.mark != "any":
            wanted_mark = None if query.mark == "none" else query.mark
            marks = [self.workspace.corrections.get(self.src[at], self.tgt[at]) for at in matches.tolist()]
            matches = matches[np.array([mark == wanted_mark for mark in marks], dtype=bool)]
        return self._sorted(matches, query)

    def _sides(self) -> tuple[tuple[Side, list[str]], ...]:
        return ("src", self.src), ("tgt", self.tgt)

    def shortlisted(self, matches: Ints, query: TableQuery) -> Ints:
        """Return the most suspicious of the matches, in their order; all of them if `top` is 0."""
        if not query.top or len(matches) <= query.top:
            return matches
        first = np.argsort(-self.pairs.suspicion[matches], kind="stable")[: query.top]
        return np.asarray(matches[np.sort(first)])

    def _numbers_fit(self, query: TableQuery) -> np.ndarray:
        found = self.pairs
        fits = (found.confidence >= query.least) & (found.confidence <= query.most)
        ranks = np.arange(1, len(fits) + 1)
        fits = fits & (ranks >= query.first) & (ranks <= query.last)
        if query.mutual != "any":
            fits = fits & (found.mutual == (query.mutual == "yes"))
        if query.suspect == "some":
            fits = fits & found.suspects.any(axis=1)
        elif query.suspect != "any":
            fits = fits & found.suspects[:, REASONS.index(query.suspect)]
        return np.asarray(fits)

    def _sorted(self, matches: Ints, query: TableQuery) -> Ints:
        found = self.pairs
        if query.sort in ("src", "tgt"):
            words = self.src if query.sort == "src" else self.tgt
            by_word = sorted(matches.tolist(), key=lambda at: folded(words[at]), reverse=query.descending)
            return np.array(by_word, dtype=np.int64)
        values: dict[str, Any] = {
            "frequency": lambda: matches,
            "confidence": lambda: found.confidence[matches],
            "score": lambda: found.score[matches],
            "margin": lambda: found.margin[matches],
            "hub": lambda: found.hubness[matches],
            "overlap": lambda: found.overlap[matches],
            "suspicion": lambda: found.suspicion[matches],
            "tgt_rank": lambda: self.workspace.ranks("tgt")[found.best[matches]],
        }
        keys = values[query.sort]()
        return matches[np.argsort(-keys if query.descending else keys, kind="stable")]

    def shown(self, at: int) -> Json:
        """Return a row."""
        found, src, tgt = self.pairs, self.src[at], self.tgt[at]
        return {
            "src": src,
            "tgt": tgt,
            "confidence": float(found.confidence[at]),
            "score": float(found.score[at]),
            "margin": float(found.margin[at]),
            "mutual": bool(found.mutual[at]),
            "src_rank": at + 1,
            "tgt_rank": int(self.workspace.ranks("tgt")[found.best[at]]),
            "hub": int(found.hubness[at]),
            "overlap": float(found.overlap[at]),
            "right": self.workspace.right("src", src, tgt),
            "mark": self.workspace.corrections.get(src, tgt),
            "pinned": bool(found.pinned[at]),
            "reasons": [name for name, holds in zip(REASONS, found.suspects[at].tolist(), strict=True) if holds],
        }


# --------------------------------------------------------------------------- the map


def points(workspace: Workspace, pairs: PairTable, positions: Mapping[Side, AnyFloats]) -> Json:
    """Return all words with their positions on the map, as parallel lists.

    Returns:
        For each side: `x` and `y`, from 0 to `grid`; `partner`, the position of the best word of the other side, or -1
        if it is not on the map; `occurrences`, the number of words of the other side whose best it is; `confidence` in
        percent and `right` of the pair. A target word has those of its best source word, if the pair is mutual.
    """
    judged = workspace.judged(_names(workspace, "src", pairs.src_rows), _names(workspace, "tgt", pairs.best))
    right = np.array([{None: 0, True: 1, False: 2}[each] for each in judged], dtype=np.int64)
    probability = np.round(100 * pairs.confidence).astype(np.int64)
    mutual = np.zeros(len(pairs.tgt_rows), dtype=bool)
    known = pairs.back_positions >= 0
    mutual[known] = pairs.mutual[pairs.back_positions[known]] & (
        pairs.best_positions[pairs.back_positions[known]] == np.flatnonzero(known)
    )
    partner = np.maximum(pairs.back_positions, 0)
    categories = {
        key: sorted({value for side in SIDES for value in workspace.items[side].categories().get(key, [])})
        for key in {key: None for side in SIDES for key in workspace.items[side].categories()}
    }
    return {
        "grid": _GRID,
        "categories": categories,
        "near": near_on_map(pairs, positions),
        "among": _AMONG,
        "hub": pairs.rules.hub,
        "src": {
            **_map_words(workspace, pairs, positions, "src"),
            "partner": pairs.best_positions.tolist(),
            "mutual": pairs.mutual.astype(int).tolist(),
            "occurrences": pairs.src_occurrences.tolist(),
            "confidence": probability.tolist(),
            "right": right.tolist(),
        },
        "tgt": {
            **_map_words(workspace, pairs, positions, "tgt"),
            "partner": pairs.back_positions.tolist(),
            "mutual": mutual.astype(int).tolist(),
            "occurrences": pairs.tgt_occurrences.tolist(),
            "confidence": np.where(mutual, probability[partner], -1).tolist(),
            "right": np.where(mutual, right[partner], 0).tolist(),
        },
    }


def near_on_map(pairs: PairTable, positions: Mapping[Side, AnyFloats]) -> float | None:
    """Return the share of mutual pairs whose words are among each other's 10 nearest on the map; None without pairs.

    positions: of the words on the map, (n, 2) and (m, 2).
    """
    rows = np.flatnonzero(pairs.mutual & (pairs.best_positions >= 0))
    if not len(rows):
        return None
    src, tgt = positions["src"], positions["tgt"]
    ends = src[rows], tgt[pairs.best_positions[rows]]
    apart = np.linalg.norm(ends[0] - ends[1], axis=1)
    within = [
        cKDTree(other_side).query(own, k=[min(_AMONG, len(other_side))])[0][:, 0]
        for own, other_side in zip(ends, (tgt, src), strict=True)
    ]
    return float(np.mean((apart <= within[0]) & (apart <= within[1])))


def _names(workspace: Workspace, side: Side, rows: Ints) -> list[str]:
    words = workspace.words(side)
    return [words[row] for row in rows.tolist()]


def _map_words(workspace: Workspace, pairs: PairTable, positions: Mapping[Side, AnyFloats], side: Side) -> Json:
    whole = np.round(np.clip(positions[side], 0.0, 1.0) * _GRID).astype(np.int64)
    names = _names(workspace, side, pairs.rows(side))
    known = workspace.items[side].texts
    return {
        "name": workspace.alignment.side(side).space.name,
        "words": names,
        "texts": [known.get(name, name)[:_MAP_TEXT] for name in names] if known else None,
        "metadata": [workspace.items[side].metadata.get(name, {}) for name in names] if known else None,
        "x": whole[:, 0].tolist(),
        "y": whole[:, 1].tolist(),
    }


# --------------------------------------------------------------------------- verdict and provenance


def about(workspace: Workspace) -> Json:
    """Return verdict, estimate, convergence curves, provenance and scores."""
    alignment = workspace.alignment
    return {
        "quality": alignment.quality.to_dict(),
        "explanation": alignment.quality.explanation,
        "curves": curves(alignment.history),
        "provenance": alignment.provenance.to_dict(),
        "scores": scores(workspace),
    }


# Stages whose curves the page shows.
_SHOWN_STAGES = ("initialize", "loop", "refine")


def curves(history: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the convergence curves of a fit."""
    return [
        {"title": each.title, "x_label": each.x_label, "y_label": each.y_label, "x": each.x, "y": each.y}
        for each in recorded(history)
        if each.stage in _SHOWN_STAGES
    ]


def scores(workspace: Workspace) -> Json | None:
    """Return P@1 by CSLS over the covered words of the lexicon that were not taught; None without a lexicon.

    Returns:
        p_at_1: None if no word is left. words: how many it counts. left_out: covered words that are left out, because
        their pairs were anchors of the fit or are accepted. covered, source_words: of the lexicon. anchors_known:
        whether the known pairs of the fit were found.
    """
    if workspace.lexicon is None:
        return None
    words = [word for word in workspace.gold["src"] if workspace.row("src", word) is not None]
    covered = [word for word in words if _covered(workspace, word)]
    taught = workspace.taught()
    counted = [word for word in covered if word not in taught]
    answers = best_answers(workspace, counted)
    hits = sum(answer in workspace.gold["src"][word] for word, answer in zip(counted, answers, strict=True))
    return {
        "p_at_1": hits / len(counted) if counted else None,
        "words": len(counted),
        "left_out": len(covered) - len(counted),
        "covered": len(covered),
        "source_words": len(workspace.gold["src"]),
        "anchors_known": workspace.anchors is not None,
    }


def best_answers(workspace: Workspace, words: Sequence[str]) -> list[str]:
    """Return the best translation of each source word; all must be in the vocabulary."""
    if not words:
        return []
    found = workspace.alignment.translate(list(words), k=1)
    return [found[word][0].word for word in words]


# --------------------------------------------------------------------------- two alignments

SHOWN = ("different", "same", "all", "first", "second")
"""Filters: words translated differently, equally, all words, words that only the first or the second has right."""


@dataclass(frozen=True)
class CompareQuery:
    """Filter and page of the comparison."""

    shown: str = "different"
    text: str = ""
    offset: int = 0
    limit: int = 50


def comparison(first: Workspace, second: Workspace, found: tuple[PairTable, PairTable], query: CompareQuery) -> Json:
    """Compare the translations of the same words by two alignments."""
    rows = [_Rows(each, pairs) for each, pairs in zip((first, second), found, strict=True)]
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
    taught = first.taught() | second.taught()
    counted = [counts and word not in taught for word, counts in zip(words, covered, strict=True)]
    matches = _matching(words, answers, judged, query)
    page = matches[query.offset : query.offset + query.limit]
    shown = [[rows[number].shown(both[at][number]) for number in (0, 1)] for at in page]
    return {
        "texts": _texts(first, {side: [row[side] for pair in shown for row in pair] for side in SIDES}),
        "names": [first.name, second.name],
        "words": len(both),
        "same": sum(a == b for a, b in zip(*answers, strict=True)),
        "right": [_right(each, counted) for each in judged],
        "left_out": sum(covered) - sum(counted),
        "anchors_known": first.anchors is not None and second.anchors is not None,
        "total": len(matches),
        "offset": query.offset,
        "rows": shown,
    }


def _matching(
    words: Sequence[str], answers: Sequence[Sequence[str]], judged: Sequence[Sequence[bool | None]], query: CompareQuery
) -> list[int]:
    """Return the positions of the words that match."""
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


def _covered(workspace: Workspace, word: str) -> bool:
    """Return whether the lexicon has a translation of a source word in the target vocabulary."""
    return any(workspace.row("tgt", answer) is not None for answer in workspace.gold["src"].get(word, ()))


def _right(judged: Sequence[bool | None], covered: Sequence[bool]) -> Json | None:
    known = [bool(each) for each, counts in zip(judged, covered, strict=True) if counts]
    return {"right": sum(known), "of": len(known)} if known else None
