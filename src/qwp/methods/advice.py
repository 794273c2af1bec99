"""Why an alignment may have failed, as far as the two spaces show it, and which options to try next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array
from qwp.spaces.embeddings import disambiguated
from qwp.stages.problem import Problem


@dataclass(frozen=True)
class Advisor:
    """Says why an alignment may have failed.

    Attributes:
        few_words: a search compares this many words (`start_words`).
        few_dimensions: the benchmark pairs with the fewest dimensions that are found, Zhang et al. (2017), have 50.
        spectrum_factor: of the pretrained pairs that are found, en-ja differs most, by 2.3. novels en - fastText fr is
            not found and differs by 7.5.
        spectrum_words: most frequent words whose spectrum is computed.
    """

    few_words: int = 2500
    few_dimensions: int = 50
    spectrum_factor: float = 3.0
    spectrum_words: int = 5000

    def advice(self, problem: Problem, *, options: Sequence[str]) -> str:
        """Return sentences with the possible reasons for a failure and the options to try next."""
        reasons = list(self.reasons(problem))
        why = f"Possible reasons: {'; '.join(reasons)}. " if reasons else ""
        return f"{why}Try next: {', or '.join(options)}."

    def reasons(self, problem: Problem) -> Iterator[str]:
        """Yield the possible reasons for a failure that the two spaces show."""
        view = problem.views[0]
        sides = (view.src, view.tgt)
        names = disambiguated([side.space for side in sides])
        for side, name in zip(sides, names, strict=True):
            if len(side.space) < self.few_words:
                yield f"{name} has only {len(side.space):,} words, and a search uses {self.few_words:,}"
            if side.space.dim < self.few_dimensions:
                yield f"{name} has only {side.space.dim} dimensions"
            if problem.ordered and (side.estimate is not None or side.order is not None):
                yield f"the words of {name} do not seem to be in order of frequency"
        frequent = (side.vectors[: min(self.spectrum_words, side.vectors.shape[0]), :] for side in sides)
        spread = [effective_dimensions(x) for x in frequent]
        if max(spread) > self.spectrum_factor * min(spread):
            figures = ", ".join(f"over {n:.0f} directions in {name}" for n, name in zip(spread, names, strict=True))
            yield f"the spectra differ: the variance is spread {figures}"


def effective_dimensions(x: Array) -> float:
    """Return the participation ratio of the spectrum of rows x (n, d): d for equal variances, 1 for one direction."""
    xp = arrays.namespace(x)
    total = float(xp.sum(x**2))
    return total**2 / float(xp.sum((x.T @ x) ** 2)) if total > 0 else 1.0
