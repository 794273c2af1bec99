"""A map of word pairs: which pairs to show, both words of each in the plane, and labels that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from qwp.arrays import AnyFloats, Floats
from qwp.results.lexicon import InducedPair
from qwp.results.sides import AlignedSide
from qwp.results.summary import looks_like_content
from qwp.showing import svg
from qwp.showing.charts import marker
from qwp.showing.html import Markup
from qwp.showing.svg import shortened, text_width

_MAP_WIDTH = 900.0
_MAP_HEIGHTS = (360.0, 720.0)
_MAP_MARGIN = (90.0, 36.0)  # room for the labels of the outermost points
_LABEL_HEIGHT = 15.0
_RINGS = (7.0, 18.0, 32.0, 48.0)
_DIRECTIONS = np.array([(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1)], dtype=np.float64)


@dataclass(frozen=True)
class WordPoint:
    """A word on the map at (x, y); the words of a translation pair share the number `pair`."""

    word: str
    side: Literal["src", "tgt"]
    x: float
    y: float
    pair: int


@dataclass(frozen=True)
class WordMap:
    """Words in the plane; words without finite coordinates are left out."""

    points: Sequence[WordPoint]
    title: str = "Map of word pairs"
    note: str = ""

    def svg(self) -> Markup | None:
        """Draw both words of each pair, a line between them, and their labels."""
        shown = [point for point in self.points if svg.drawable(point.x) and svg.drawable(point.y)]
        return _drawn(shown) if shown else None


@dataclass(frozen=True)
class _Label:
    """A placed label: where its text is anchored (y is the middle), and whether it needs a leader line."""

    x: float
    y: float
    anchor: Literal["start", "middle", "end"]
    far: bool


def _map_positions(points: Sequence[WordPoint]) -> tuple[Floats, float]:
    """Return the positions (p, 2) in the picture and its height; both axes have one scale, so distances compare."""
    data = np.array([(point.x, -point.y) for point in points], dtype=np.float64)  # SVG counts y downwards
    low, high = data.min(axis=0), data.max(axis=0)
    span = high - low
    room = np.array([_MAP_WIDTH - 2 * _MAP_MARGIN[0], _MAP_HEIGHTS[1] - 2 * _MAP_MARGIN[1]])
    scales = [float(r / s) for r, s in zip(room, span, strict=True) if s > svg.SMALLEST]
    scale = min(scales, default=1.0)
    height = float(np.clip(span[1] * scale + 2 * _MAP_MARGIN[1], *_MAP_HEIGHTS))
    centre = np.array([_MAP_WIDTH / 2, height / 2])
    return (data - (low / 2 + high / 2)) * scale + centre, height


def _overlap(boxes: Floats, obstacles: Floats) -> Floats:
    """Return the area that each box (c, 4) shares with all obstacles (o, 4), (c,). Columns are x0, y0, x1, y1."""
    size = np.minimum(boxes[:, None, 2:], obstacles[None, :, 2:]) - np.maximum(
        boxes[:, None, :2], obstacles[None, :, :2]
    )
    area: Floats = np.prod(np.clip(size, 0.0, None), axis=2).sum(axis=1)
    return area


def _candidate_boxes(position: Floats, width: float) -> Floats:
    """Return boxes (rings * 8, 4) for a label of `width` around the point at `position` (2,), nearest ring first."""
    half = np.array([width / 2, _LABEL_HEIGHT / 2])
    rings = np.repeat(np.array(_RINGS), len(_DIRECTIONS))[:, None]
    directions = np.tile(_DIRECTIONS, (len(_RINGS), 1))
    # A diagonal neighbour may sit closer on each axis and still be clear of the point.
    reach = np.where(np.abs(directions).sum(axis=1, keepdims=True) == 2, 0.6, 1.0) * rings
    centres = position + directions * (reach + half)
    return np.concatenate([centres - half, centres + half], axis=1)


def _place_labels(positions: Floats, widths: Sequence[float], partners: Floats, height: float) -> list[_Label]:
    """Place the labels greedily: each takes the position that covers the fewest labels and points.

    Args:
        positions: the points (p, 2).
        partners: the other word of each pair (p, 2), or the point itself. A label prefers the side away from it.
    """
    labels: list[_Label] = []
    # Labels already placed weigh more than points: two words printed over each other cannot be read at all.
    markers = np.concatenate([positions - 4.5, positions + 4.5], axis=1)
    placed = np.empty((0, 4))
    ring_cost = np.repeat(np.arange(len(_RINGS)) * 0.15, len(_DIRECTIONS))
    order_cost = np.tile(np.arange(len(_DIRECTIONS)) * 0.01, len(_RINGS))
    unit = _DIRECTIONS / np.linalg.norm(_DIRECTIONS, axis=1, keepdims=True)
    for position, width, partner in zip(positions, widths, partners, strict=True):
        boxes = _candidate_boxes(position, width)
        area = width * _LABEL_HEIGHT
        outside = np.clip(-boxes[:, :2], 0, None).sum(axis=1)
        outside += np.clip(boxes[:, 2:] - (_MAP_WIDTH, height), 0, None).sum(axis=1)
        away = partner - position
        towards = unit @ (away / max(float(np.linalg.norm(away)), 1.0))
        cost = 4 * _overlap(boxes, placed) / area + 2 * _overlap(boxes, markers) / area + outside
        best = int(np.argmin(cost + ring_cost + order_cost + 0.1 * np.tile(towards, len(_RINGS))))
        placed = np.concatenate([placed, boxes[best : best + 1]])
        labels.append(_label_of(boxes[best], best))
    return labels


def _label_of(box: Floats, candidate: int) -> _Label:
    side = _DIRECTIONS[candidate % len(_DIRECTIONS)][0]
    x0, y0, x1, y1 = (float(value) for value in box)
    middle, far = (y0 + y1) / 2, candidate >= len(_DIRECTIONS)
    # Anchored on the side of the point, so that an error in the estimated width falls away from it.
    if side > 0:
        return _Label(x0, middle, "start", far)
    if side < 0:
        return _Label(x1, middle, "end", far)
    return _Label((x0 + x1) / 2, middle, "middle", far)


def _pairs(points: Sequence[WordPoint]) -> list[tuple[int, int]]:
    """Return the indices (source, target) of the words that share a pair number."""
    targets: dict[int, list[int]] = {}
    for index, point in enumerate(points):
        if point.side == "tgt":
            targets.setdefault(point.pair, []).append(index)
    return [
        (index, other)
        for index, point in enumerate(points)
        if point.side == "src"
        for other in targets.get(point.pair, [])
    ]


def _drawn(points: Sequence[WordPoint]) -> Markup:
    """Draw at least one point with finite coordinates."""
    positions, height = _map_positions(points)
    pairs = _pairs(points)
    partners, names = positions.copy(), [""] * len(points)
    for a, b in pairs:
        partners[a], partners[b] = positions[b], positions[a]
        names[a], names[b] = points[b].word, points[a].word
    words = [shortened(point.word) for point in points]
    # Two pixels of padding on each side, so that even the label of an empty word has a width.
    labels = _place_labels(positions, [text_width(word) + 4 for word in words], partners, height)
    spots = [(float(x), float(y)) for x, y in positions]
    parts = [svg.line(*spots[a], *spots[b], "pair") for a, b in pairs]
    for spot, label in zip(spots, labels, strict=True):
        if label.far:
            parts.append(svg.line(*spot, label.x, label.y, "leader"))
    for point, spot, name in zip(points, spots, names, strict=True):
        parts.append(marker(point.side, *spot, 3.5, f"{point.word} – {name}" if name else point.word))
    for point, word, label in zip(points, words, labels, strict=True):
        parts.append(svg.text(label.x, label.y + 4, word, f"word {point.side}", label.anchor))
    return svg.picture(_MAP_WIDTH, height, f"Map of {len(points)} words", "map", parts)


def word_map(src_vectors: npt.ArrayLike, tgt_vectors: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Project both sides of p word pairs onto the first two principal components of all 2p vectors.

    The same vectors always give the same picture because the sign of each axis is fixed.

    Args:
        src_vectors, tgt_vectors: (p, d) in the common space.

    Returns:
        Two arrays (p, 2). With d = 1 the second column is 0.
    """
    src, tgt = (np.asarray(side, dtype=np.float64) for side in (src_vectors, tgt_vectors))
    plane = np.zeros((2 * len(src), 2))
    if src.size:
        stacked = np.concatenate([src, tgt])
        stacked -= stacked.mean(axis=0)
        axes = np.linalg.svd(stacked, full_matrices=False)[2][:2]
        # An SVD does not determine the sign of an axis; we make its largest entry positive.
        largest = np.abs(axes).argmax(axis=1)
        axes *= np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)[:, None]
        plane[:, : len(axes)] = stacked @ axes.T
    return plane[: len(src)], plane[len(src) :]


def generality(side: AlignedSide) -> AnyFloats:
    """Return the cosine of each word, most frequent first, to the mean of all unit vectors, (n,)."""
    vectors = side.space.vectors[side.frequent(len(side.space))].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1.0)
    mean = unit.mean(axis=0)
    return np.asarray(unit @ mean / max(float(np.linalg.norm(mean)), 1e-12))


@dataclass(frozen=True)
class ContentWords:
    """Chooses words and pairs that readers know and that are no function words. Set by hand.

    Attributes:
        function_words: this many of the most frequent words are mostly function words.
        small: so is one word in `small` of a small vocabulary.
        last_rank: examples have at most this rank: few readers know rarer words.
        pool: candidate pairs for each pair that is drawn, most confident first.
        max_cosines: largest cosine of two words on the map; the next limit applies if the one before leaves too few
            pairs.
    """

    function_words: int = 100
    small: int = 50
    last_rank: int = 1500
    pool: int = 12
    max_cosines: tuple[float, ...] = (0.4, 0.6, 1.1)

    def ranks(self, side: AlignedSide, last: int | None = None) -> list[int]:
        """Return the ranks, from 0, of words that look like content words: the less general half of the vocabulary."""
        names, n = side.space.words, len(side.space)
        chosen = np.arange(self.first_rank(n), n if last is None else min(last, n))
        found = generality(side)[chosen]
        rows = side.frequent(n)
        return [
            int(rank)
            for rank, general in zip(chosen, found <= np.median(found) if len(found) else [], strict=True)
            if general and looks_like_content(names[rows[rank]])
        ]

    def first_rank(self, n: int) -> int:
        """Return the rank of the first word of a vocabulary of n that is probably no function word."""
        return min(self.function_words, n // self.small)

    def examples(self, side: AlignedSide, wanted: int) -> list[str]:
        """Return content words spread evenly over the frequent ranks, chosen independently of their translations."""
        rows = side.frequent(len(side.space))
        ranks = self.ranks(side, self.last_rank) or list(range(min(self.last_rank, len(rows))))
        return [side.space.words[rows[rank]] for rank in ranks[:: max(1, len(ranks) // wanted)][:wanted]]

    def pairs(
        self, pairs: Sequence[InducedPair], sides: tuple[AlignedSide, AlignedSide], vectors: AnyFloats, wanted: int
    ) -> list[int]:
        """Return the rows of the pairs to draw, most confident first, words of new topics before others.

        Args:
            pairs: the pairs of all source words, most frequent first.
            vectors: unit rows (n, d) of the source words in the common space.
        """
        chosen: list[int] = []
        pool = self._candidates(pairs, sides)[: self.pool * wanted]
        for limit in self.max_cosines:
            for row in pool:
                if len(chosen) == wanted:
                    return chosen
                if row not in chosen and (not chosen or float(np.max(vectors[chosen] @ vectors[row])) < limit):
                    chosen.append(row)
        return chosen

    def _candidates(self, pairs: Sequence[InducedPair], sides: tuple[AlignedSide, AlignedSide]) -> list[int]:
        """Return the rows of mutual pairs of content words that are not spelled alike, most confident first."""
        src, tgt = sides
        order = tgt.frequent(len(tgt.space))
        targets = {tgt.space.words[order[rank]] for rank in self.ranks(tgt)}
        mutual = [row for row in self.ranks(src) if pairs[row].mutual and pairs[row].tgt in targets]
        distinct = [row for row in mutual if pairs[row].src.lower() != pairs[row].tgt.lower()]
        return sorted(distinct or mutual or range(len(pairs)), key=lambda row: -pairs[row].confidence)
