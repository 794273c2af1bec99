"""Initialize by given data: a lexicon, weighted pairs, words that both sides spell alike, a matrix, or the identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Floats
from qwp.errors import InputError
from qwp.maps.pairs import RowPairs, from_pairs, matched_rows
from qwp.maps.procrustes import Maps, least_squares, orthogonality_error, polar_svd, procrustes
from qwp.maps.projection import pad_maps
from qwp.parameters import OTHER, param
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Initializer, Report


@dataclass(frozen=True, kw_only=True)
class Given(Initializer):
    """An initializer without randomness."""

    uses_seed = False


@dataclass(frozen=True, kw_only=True)
class LexiconPairs(Given):
    """Procrustes on the pairs of a lexicon (Schoenemann 1966)."""

    def named(self, name: str) -> str:
        """Return the name with the file that the command line takes."""
        return f"{name}:FILE"

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Raise an InputError without a lexicon."""
        if not lexicon:
            raise InputError("start='lexicon' needs lexicon=...; none was given")

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the map of the known pairs."""
        return from_pairs(view.x, view.y, *problem.known_pairs(view))


@dataclass(frozen=True, kw_only=True)
class WeightedPairs(Given):
    """Procrustes on pairs of rows with weights, such as the pairs that a bridge joins. Rows and weights: (p,) each."""

    pairs: RowPairs
    weights: Floats

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the map of the pairs."""
        rows = matched_rows(view.x, view.y, *view.positions(self.pairs))
        return procrustes(*rows, arrays.asarray(self.weights, view.x))


@dataclass(frozen=True, kw_only=True)
class RidgeRegression(Given):
    """The matrix W that minimises |X W - Y|^2 + ridge |W|^2 over the pairs of a lexicon; W need not be orthogonal."""

    ridge: float = param(0.0, "Penalty on the squared entries of the map.", OTHER, least=0, most=1e12)

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the map of the known pairs."""
        return least_squares(*matched_rows(view.x, view.y, *problem.known_pairs(view)), ridge=self.ridge)


@dataclass(frozen=True, kw_only=True)
class IdenticalStrings(Given):
    """Procrustes on the words that both sides spell alike: names, numbers, loan words (Smith et al. 2017)."""

    def named(self, name: str) -> str:
        """Return the name with what it means."""
        return f"{name} (shared strings)"

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the map of the identical words."""
        return from_pairs(view.x, view.y, *view.identical_pairs())


@dataclass(frozen=True, kw_only=True)
class Identity(Given):
    """The identity matrix, for spaces that are nearly aligned."""

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the identity."""
        xp = arrays.namespace(view.x)
        return view.project(xp.eye(problem.width, dtype=view.x.dtype, device=arrays.device(view.x)))


@dataclass(frozen=True, kw_only=True)
class GivenMatrix(Given):
    """A matrix that the user gives."""

    def named(self, name: str) -> str:
        """Return the name with the file that the command line takes."""
        return f"{name}:FILE.npy"

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Raise an InputError without a matrix."""
        if not matrix:
            raise InputError("start='matrix' needs start_matrix=...; none was given")

    def initial_map(self, problem: Problem, view: View, report: Report) -> Array:
        """Return the matrix, exactly orthogonal."""
        assert problem.matrix is not None, "supervision is checked before the fit"
        given = np.asarray(problem.matrix, dtype=np.float64)
        w = orthogonal_matrix(given, view.src.space.dim, view.tgt.space.dim)
        return view.project(pad_maps(Maps(arrays.asarray(w, view.x)), problem.width).src)


def orthogonal_matrix(matrix: np.ndarray, src_dim: int, tgt_dim: int) -> np.ndarray:
    """Check a matrix of the user, (src_dim, tgt_dim), and return the nearest orthogonal one.

    It has to be finite and orthogonal to 1e-3. Between spaces of different width its rows or its columns have to be
    orthonormal.
    """
    if matrix.shape != (src_dim, tgt_dim):
        raise InputError(f"the start matrix has shape {matrix.shape}; the vectors need ({src_dim}, {tgt_dim})")
    if not np.isfinite(matrix).all():
        raise InputError("the start matrix holds NaN or infinite entries; expected finite numbers")
    error = orthogonality_error(matrix if src_dim >= tgt_dim else matrix.T)
    if error > 1e-3:
        raise InputError(
            f"the start matrix is not orthogonal (largest entry of |W^T W - I| is {error:.2g}, "
            "at most 0.001 expected): project it with qwp.maps.procrustes.polar first"
        )
    return np.asarray(polar_svd(matrix))
