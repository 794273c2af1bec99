"""Why an alignment may have failed, as far as the two spaces show it, and which options to try next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qwp import arrays
from qwp.arrays import Array
from qwp.spaces.embeddings import disambiguated
from qwp.stages.problem import PreparedSpace, Problem

FEW_WORDS = 2500
"""Source: `start_words`, the words that initializers compare."""
FEW_DIMENSIONS = 50
"""Source: the benchmark pairs with the fewest dimensions that are found, Zhang et al. (2017), have 50."""
SPECTRUM_FACTOR = 3.0
"""Source: of the pretrained pairs that are found, en-ja differs most, by 2.3. novels en - fastText fr is not found and
differs by 7.5."""
SPECTRUM_WORDS = 5000


def advice(problem: Problem, *, options: Sequence[str]) -> str:
    """Return sentences with the possible reasons for a failure and the options to try next."""
    reasons = list(reasons_of(problem))
    why = f"Possible reasons: {'; '.join(reasons)}. " if reasons else ""
    return f"{why}Try next: {', or '.join(options)}."


def reasons_of(problem: Problem) -> Iterator[str]:
    """Yield the possible reasons for a failure that the two spaces show."""
    view = problem.views[0]
    sides = (view.src, view.tgt)
    names = disambiguated([side.space for side in sides])
    for side, name in zip(sides, names, strict=True):
        if len(side.space) < FEW_WORDS:
            yield f"{name} has only {len(side.space):,} words, and a search uses {FEW_WORDS:,}"
        if side.space.dim < FEW_DIMENSIONS:
            yield f"{name} has only {side.space.dim} dimensions"
        if problem.ordered and (side.estimate is not None or side.order is not None):
            yield f"the words of {name} do not seem to be in order of frequency"
    spread = [effective_dimensions(_frequent(side)) for side in sides]
    if max(spread) > SPECTRUM_FACTOR * min(spread):
        figures = ", ".join(f"over {n:.0f} directions in {name}" for n, name in zip(spread, names, strict=True))
        yield f"the spectra differ: the variance is spread {figures}"


def effective_dimensions(x: Array) -> float:
    """Return the participation ratio of the spectrum of rows x (n, d): d for equal variances, 1 for one direction."""
    xp = arrays.namespace(x)
    total = float(xp.sum(x**2))
    return total**2 / float(xp.sum((x.T @ x) ** 2)) if total > 0 else 1.0


def _frequent(side: PreparedSpace) -> Array:
    return side.vectors[: min(SPECTRUM_WORDS, side.vectors.shape[0]), :]
