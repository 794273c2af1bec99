"""Migration of a store of vectors to a new embedding model: align, measure, then convert or write an adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Ints, Stream
from qwp.errors import InputError, one_of
from qwp.judging.verdict import SUCCEEDED
from qwp.methods import make_aligner
from qwp.methods.options import Options
from qwp.migration.adapter import Adapter, check_suffix, mutual_pairs
from qwp.migration.convert import Conversion
from qwp.migration.measure import Candidate, Recall, candidates, choose, recall, seconds_per_query
from qwp.migration.sources import FileOptions, Source, all_ids, as_source, known_pairs, vectors_of
from qwp.results.alignment import Alignment
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.frequency import NO_ORDER
from qwp.spaces.io.files import check_folder
from qwp.spaces.lexicon import Lexicon, PairsOfWords
from qwp.spaces.objects import Space
from qwp.spaces.stores import ReadableStore

if TYPE_CHECKING:
    from typing_extensions import Unpack

GO, NO_GO = "go", "no-go"
LEAST_RECALL = 0.9
"""Recall@10 for "go". Set by hand: one query in ten loses its document."""
DOCUMENTS, QUERIES = CONVERT = ("documents", "queries")
"""What is converted: the old documents, or the new queries."""

Converted: TypeAlias = Literal["documents", "queries"]


@dataclass(frozen=True)
class Design:
    """How many items are aligned and held out. Set by hand.

    Attributes:
        max_items: items of each side that are aligned and searched, drawn at random. An alignment of 20,000 takes
            minutes on a CPU.
        min_pairs: fewest known pairs of which some are held out.
        held_out: most pairs that are held out. With 1,000 the standard error of a share is at most 1.6 points.
        well_determined: pairs for each dimension beyond which an alignment adds little to known pairs.
        min_unpaired: items of each side without a known counterpart that are worth an alignment.
    """

    max_items: int = 20_000
    min_pairs: int = 20
    held_out: int = 1000
    well_determined: int = 4
    min_unpaired: int = 500

    def held(self, pairs: int) -> int:
        """Return how many of the known pairs are held out."""
        return min(self.held_out, pairs // 5) if pairs >= self.min_pairs else 0

    def aligns(self, pairs: int, others: int, dim: int) -> bool:
        """Return whether to align the other items, too. pairs: known pairs that are not held out."""
        return not pairs or (others >= self.min_unpaired and pairs < self.well_determined * dim)


DESIGN = Design()


@dataclass(frozen=True)
class Report:
    """What is known before anything is converted.

    Attributes:
        decision: GO or NO_GO.
        reason: the decision in a sentence.
        convert: DOCUMENTS or QUERIES.
        map: the chosen map.
        tried: every map with its mean reciprocal rank on validation pairs.
        pairs: number of known pairs.
        after: recall of new queries on held-out pairs after the conversion; None without enough pairs.
        before: the same before it; None if the dimensions differ.
        verdict: of the alignment, if there was one.
        estimated_recall_at_1: estimate of the alignment, which needs no pair.
        seconds_per_query: of the adapter; None if queries need none.
    """

    decision: str
    reason: str
    convert: str
    map: str
    tried: list[dict[str, Any]]
    pairs: int
    after: Recall | None = None
    before: Recall | None = None
    verdict: str | None = None
    estimated_recall_at_1: float | None = None
    seconds_per_query: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """Return the report of what `to_dict` returned."""
        recalls = {name: None if values[name] is None else Recall(**values[name]) for name in ("after", "before")}
        return cls(**{**values, **recalls})


@dataclass(frozen=True)
class Migration:
    """The result of a migration. out: the file that was written, if any; items: number of converted items."""

    adapter: Adapter
    report: Report
    out: Path | None = None
    items: int = 0


def migrate(
    old: Space | ReadableStore,
    new: Space | ReadableStore,
    *,
    pairs: PairsOfWords | None = None,
    out: str | PathLike[str] | None = None,
    adapter: str | PathLike[str] | None = None,
    least: float = LEAST_RECALL,
    force: bool = False,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    files: FileOptions | None = None,
    **options: Unpack[Options],
) -> Migration:
    """Move vectors of an old model to a new one: align, measure, and then convert if the measurement allows it.

    With `out`, the documents are converted in a stream into a new file, and queries of the new model need no change. An
    interrupted conversion continues when it is called again. With `adapter`, the documents stay, and the adapter in the
    file converts queries of the new model. With neither, nothing is written.

    Args:
        old: vectors of the old model: a path, a store, or vectors as `qwp.align` takes them.
        new: vectors of the new model, of the same items, of some of them or of others.
        pairs: ids of the same item in both; by default the ids in common. An empty list uses none of them.
        out: the file to write. The old one is never changed.
        adapter: the adapter file to write, .npz, .json or .onnx.
        least: recall@10 on held-out pairs that counts as "go".
        force: write after a "no-go", too.
        seed: of the held-out pairs and the alignment.
        progress: gets the number of converted items.
        files: how to read and write files.
        options: parameters of the alignment, as of `qwp.align`.
    """
    if out is not None and adapter is not None:
        raise InputError("out and adapter were both given; expected one: documents are converted, or queries are")
    convert: Converted = "documents" if adapter is None else "queries"
    if adapter is not None:
        check_folder(Path(adapter))
        check_suffix(Path(adapter))
    files = files or FileOptions()
    sources = as_source(old, "src", files.reading), as_source(new, "tgt", files.reading)
    given = None if pairs is None else _given_pairs(pairs)
    settings = {"seed": seed, "pairs": given, "align": dict(options)}
    conversion = None
    if out is not None:
        conversion = Conversion(sources[0], sources[1], Path(out), settings, dict(files.writing))
        found = conversion.fitted()
        if found is not None:
            done = Migration(found[0], Report.from_dict(found[1]))
            return _converted(done, conversion, least, progress, force=force)
    data = _Data.read(*sources, given, seed=seed)
    planned = plan(data, convert, seed=seed, align=options)
    if conversion is not None:
        conversion.begin(planned.adapter, planned.report.to_dict())
        return _converted(planned, conversion, least, progress, force=force)
    planned = replace(planned, report=_decided(planned.report, least))
    if adapter is not None and (force or planned.report.decision == GO):
        return replace(planned, out=planned.adapter.save(adapter))
    return planned


def _given_pairs(pairs: PairsOfWords) -> list[tuple[str, str]]:
    empty = not isinstance(pairs, (str, PathLike, Lexicon)) and not len(list(pairs))
    return [] if empty else list(Lexicon.of(pairs))


def _converted(
    planned: Migration, conversion: Conversion, least: float, progress: Callable[[int], None] | None, *, force: bool
) -> Migration:
    """Convert all documents if the decision is "go"."""
    planned = replace(planned, report=_decided(planned.report, least))
    if not force and planned.report.decision != GO:
        conversion.discard()
        return planned
    items = conversion.run(planned.adapter, progress)
    return replace(planned, out=conversion.out, items=items)


# --------------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class _Data:
    """Vectors of both sides in memory: paired items first, in the same rows, and then others.

    old: (p + n, d). new: (p + m, e). pairs: p.
    """

    old: AnyFloats
    new: AnyFloats
    pairs: int

    @classmethod
    def read(cls, old: Source, new: Source, given: list[tuple[str, str]] | None, *, seed: int) -> _Data:
        """Read the pairs, or a sample of them, and a sample of the other items."""
        ids = all_ids(old), all_ids(new)
        pairs = known_pairs(*ids, given)
        if given is None and not pairs:
            raise InputError(
                "no id is in both the old and the new vectors, so no item is known to be the same; expected ids in "
                "common, pairs of ids (--pairs FILE; rows without ids by their numbers from 0, such as `0 0`), or no "
                "pairs on purpose (--unpaired, pairs=[]), which leaves nothing to measure"
            )
        rng = arrays.rng(seed, Stream.MIGRATION)
        pairs = [pairs[row] for row in np.sort(rng.permutation(len(pairs))[: DESIGN.max_items])]
        rng.shuffle(pairs)
        sides = []
        for source, of_side, paired in zip(
            (old, new), ids, zip(*pairs, strict=True) if pairs else ((), ()), strict=True
        ):
            taken = set(paired)
            others = [id for id in of_side if id not in taken]
            chosen = rng.permutation(len(others))[: DESIGN.max_items - len(pairs)]
            order = [*paired, *(others[row] for row in chosen)]
            rows, vectors = vectors_of(source, order)
            sides.append(vectors[[rows[id] for id in order]])
        return cls(sides[0], sides[1], len(pairs))

    @property
    def others(self) -> int:
        """Items without a known counterpart on the side that has fewer of them."""
        return min(len(self.old), len(self.new)) - self.pairs


# --------------------------------------------------------------------------- choosing and measuring


def plan(data: _Data, convert: Converted, *, seed: int = 0, align: Mapping[str, Any] | None = None) -> Migration:
    """Choose a map on validation pairs and measure it on held-out pairs. The decision is left open."""
    one_of(CONVERT, convert=convert)
    p = data.pairs
    held = DESIGN.held(p)
    split = 2 * held
    alignment, found = _aligned(data, np.arange(split, p), seed, align or {})
    problem = _Problem(data, convert, found)
    kinds = (["known"] if p else []) + (["aligned"] if found is not None else [])
    if held:
        dim = min(data.old.shape[1], data.new.shape[1])
        tried = [each for pairs in kinds for each in candidates(pairs, dim)]
        best, scores = choose(tried, lambda each: problem.recall(each, np.arange(split, p), np.arange(held, split)))
    else:  # nothing tells which map is better, so the one with the fewest free numbers
        best, scores = Candidate("orthogonal", 0.0, kinds[-1]), []
    measured = problem.recall(best, np.arange(held, p), np.arange(held)) if held else None
    adapter = problem.fit(best, np.arange(p))
    quality = None if alignment is None else alignment.quality
    report = Report(
        NO_GO,
        "",
        convert,
        str(best),
        [{"map": str(each), "reciprocal_rank": score} for each, score in scores],
        p,
        measured,
        _before(data, held) if held else None,
        None if quality is None else quality.verdict,
        None if quality is None or quality.estimate is None else quality.estimate.overall.p1,
        seconds_per_query(adapter) if convert == QUERIES else None,
    )
    return Migration(adapter, report)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Fits and measures candidates. aligned: pairs that the alignment found, (q, d) and (q, e)."""

    data: _Data
    convert: Converted
    aligned: tuple[AnyFloats, AnyFloats] | None

    def fit(self, candidate: Candidate, known: Ints) -> Adapter:
        """Fit a candidate to known pairs, and to those of the alignment if the candidate uses them."""
        old, new = self.data.old[known], self.data.new[known]
        if candidate.pairs == "aligned" and self.aligned is not None:
            old, new = np.concatenate([old, self.aligned[0]]), np.concatenate([new, self.aligned[1]])
        return candidate.fit(old, new) if self.convert == DOCUMENTS else candidate.fit(new, old)

    def recall(self, candidate: Candidate, known: Ints, asked: Ints) -> Recall:
        """Measure a candidate that is fitted to some known pairs, with the new vectors of others as queries."""
        adapter, data = self.fit(candidate, known), self.data
        documents, queries = data.old, data.new[asked]
        if self.convert == DOCUMENTS:
            documents = adapter(documents)
        else:
            queries = adapter(queries)
        return recall(queries, documents, asked, data.new[asked])


def _before(data: _Data, held: int) -> Recall | None:
    """Measure queries of the new model in the old documents as they are; None if the dimensions differ."""
    if data.old.shape[1] != data.new.shape[1]:
        return None
    return recall(data.new[:held], data.old, np.arange(held), data.new[:held])


def _aligned(
    data: _Data, known: Ints, seed: int, options: Mapping[str, Any]
) -> tuple[Alignment | None, tuple[AnyFloats, AnyFloats] | None]:
    """Align all items but other pairs, if the known pairs do not determine the map. Return the pairs that it finds."""
    dim = max(data.old.shape[1], data.new.shape[1])
    if not DESIGN.aligns(len(known), data.others, dim):
        return None, None
    sides = []
    for label, vectors in (("src", data.old), ("tgt", data.new)):
        rows = np.concatenate([known, np.arange(data.pairs, len(vectors))])
        sides.append(Embeddings([f"{label}:{row}" for row in rows.tolist()], vectors[rows], name=label))
    lexicon = [(f"src:{row}", f"tgt:{row}") for row in known.tolist()]
    seeded: dict[str, Any] = {"start": "lexicon"} if lexicon else {}
    aligner = make_aligner("qwp", **{"seed": seed, "order": NO_ORDER, **seeded, **options})
    aligner.fit(*sides, lexicon=lexicon or None)
    found = aligner.alignment_
    try:
        return found, mutual_pairs(found)
    except InputError:
        if not data.pairs:
            raise
        return found, None


def _decided(report: Report, least: float) -> Report:
    """Return the report with its decision. least: recall@10 that counts as "go"."""
    after = report.after
    if after is not None:
        good = after.at_10 >= least
        reason = (
            f"{100 * after.at_10:.1f} % of {after.queries:,} held-out queries find their document among the ten "
            f"nearest of {after.documents:,}, {'at least' if good else 'less than'} {100 * least:g} %"
        )
    else:
        good = report.verdict == SUCCEEDED
        reason = (
            f"nothing was measured, because there are {report.pairs} known pairs (expected {DESIGN.min_pairs} or "
            f"more); the alignment {'succeeded' if good else 'is ' + (report.verdict or 'missing')}"
        )
    return replace(report, decision=GO if good else NO_GO, reason=reason)
