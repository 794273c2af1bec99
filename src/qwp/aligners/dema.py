"""Density matching (Zhou et al. 2019): each space a Gaussian mixture, each map carries one mixture onto the other."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from qwp import backend, quality, start
from qwp.aligners.base import RefinedAligner, Run, Supervision, clamped, timed
from qwp.backend import Array
from qwp.checks import at_least, between, one_of, positive
from qwp.errors import InputError
from qwp.procrustes import Maps, polar, polar_steps

logger = logging.getLogger(__name__)

STARTS = ("random", "identity", "profiles")
_START_STREAM, _SAMPLE_STREAM = 21, 22
_MOMENTUM, _SQUARES_MOMENTUM, _TINY = 0.9, 0.99, 1e-12
# The learning rate falls linearly to this share of itself.
_FINAL_RATE = 0.1


@dataclass(kw_only=True, eq=False, repr=False)
class DeMa(RefinedAligner):
    """Maximum likelihood of each space, mapped, under the Gaussian mixture of the other; then CSLS refinement.

    Zhou, Ma, Wang, Neubig (2019), Density matching for bilingual word embedding. The `components` most frequent words
    are the means of the mixture of their space, its weights are rank ** -frequency_power, its standard deviation falls
    geometrically from `sigma` to `final_sigma`: with wide components the likelihood has few local optima. Both
    directions have a map of their own, tied by `back_translation`, the weight of the cosine between a word and itself
    after both maps. Adam follows the gradient along the orthogonal matrices; `learning_rate` is about the angle, in
    radians, by which its first steps turn a word. `restarts` random starts are trained side by side; the map with the
    highest mean CSLS of mutual translations after any epoch is the one returned. `identical` adds the likelihood of
    words spelt alike, each under the component of its namesake alone.
    """

    method: ClassVar[str] = "dema"
    summary: ClassVar[str] = "density matching of Gaussian mixtures in both directions, then refinement"
    paper: ClassVar[str] = "Zhou et al. 2019"
    needs_torch: ClassVar[bool] = True

    start: str = "random"
    start_words: int = 2500
    restarts: int = 8
    components: int = 1000
    frequency_power: float = 0.0
    sigma: float = 0.6
    final_sigma: float = 0.3
    back_translation: float = 0.1
    identical: bool = False
    identical_weight: float = 1.0
    epochs: int = 12
    epoch_steps: int = 50
    batch_size: int = 300
    learning_rate: float = 0.3

    def _validate(self, supervision: Supervision) -> None:
        super()._validate(supervision)
        one_of(STARTS, start=self.start)
        at_least(1, start_words=self.start_words, restarts=self.restarts, components=self.components)
        at_least(1, epochs=self.epochs, epoch_steps=self.epoch_steps, batch_size=self.batch_size)
        at_least(0, back_translation=self.back_translation, identical_weight=self.identical_weight)
        between(0, 10, frequency_power=self.frequency_power)
        positive(sigma=self.sigma, final_sigma=self.final_sigma, learning_rate=self.learning_rate)
        if self.final_sigma > self.sigma:
            raise InputError(
                f"final_sigma={self.final_sigma} should be at most sigma={self.sigma}: it is annealed down"
            )

    def _first_map(self, run: Run) -> Array:
        state = run.resumed("train")
        if state is None:
            with timed([run], "start"):
                training = self._begin(run)
        else:
            arrays = {name: backend.asarray(array, run.x) for name, array in state.arrays.items()}
            best = Best(state.values["mean_csls"], backend.asarray(state.map, run.x))
            training = Training(arrays["maps"], arrays["mean"], arrays["square"], best)
        with timed([run], "train"):
            return self._train(run, training, first_epoch=0 if state is None else state.done)

    # ----------------------------------------------------------------- start

    def _begin(self, run: Run) -> Training:
        xp = backend.namespace(run.x)
        forward = xp.stack(self._starts(run))
        maps = xp.stack([forward, xp.matrix_transpose(forward)])
        return Training(maps, xp.zeros_like(maps), xp.zeros_like(maps), Best(-math.inf, forward[0, ...]))

    def _starts(self, run: Run) -> list[Array]:
        """The first maps (d, d): as many as there are restarts if they are random, otherwise one."""
        x, dim = run.x, run.x.shape[1]
        if self.start == "profiles":
            return [start.profiles(x, run.y, self.start_words)]
        if self.start == "identity":
            return [backend.namespace(x).eye(dim, dtype=x.dtype, device=backend.device(x))]
        draws = (backend.rng(self.seed, _START_STREAM, number) for number in range(self.restarts))
        return [quality.random_rotation(dim, int(rng.integers(2**31)), x) for rng in draws]

    # ----------------------------------------------------------------- training

    def _train(self, run: Run, training: Training, first_epoch: int) -> Array:
        """Returns the map (d, d) that was best after any epoch, of any restart."""
        src, tgt = self._mixture("source", run.x), self._mixture("target", run.y)
        pairs = self._identical_pairs(run)
        for epoch in range(first_epoch, self.epochs):
            likelihood = self._train_epoch(training, src, tgt, pairs, epoch)
            judged = [self._judged(src, tgt, forward) for forward in training.maps[0, ...]]
            training.best = max(training.best, *judged, key=lambda best: best.mean_csls)
            now = max(best.mean_csls for best in judged)
            figures = {
                "sigma": self._sigma(self._steps_before(epoch + 1) - 1),
                "log_likelihood": float(likelihood.max()),
                "mean_csls": now,
                "best_mean_csls": training.best.mean_csls,
            }
            run.report("train", epoch + 1, self.epochs, figures)
            run.checkpoint(
                "train",
                epoch + 1,
                training.best.map,
                arrays={"maps": training.maps, "mean": training.mean, "square": training.square},
                values={"mean_csls": training.best.mean_csls},
            )
        return training.best.map

    def _train_epoch(self, training: Training, src: Mixture, tgt: Mixture, pairs: Array | None, epoch: int) -> Array:
        """All steps of an epoch. Returns the log-likelihood of the restarts, both directions together, (R,)."""
        words_src, words_tgt = (self._batches(side, epoch, number) for number, side in enumerate((src, tgt)))
        likelihood = None
        for place in range(self.epoch_steps):
            step = self._steps_before(epoch) + place
            variance = self._sigma(step) ** 2
            x, y = src.means[words_src[place, :], :], tgt.means[words_tgt[place, :], :]
            gradient, likelihood = self._gradient(training.maps, x, y, src, tgt, variance)
            if pairs is not None:
                gradient = gradient + self.identical_weight * pairs
            training.step(gradient, self._rate(step) / src.means.shape[1] ** 0.5, step + 1)
        return likelihood

    def _gradient(
        self, maps: Array, x: Array, y: Array, src: Mixture, tgt: Mixture, variance: float
    ) -> tuple[Array, Array]:
        """Gradient of variance times the objective in maps (2, R, d, d), and the log-likelihood (R,).

        x: (b, d), y: (c, d) samples. For orthogonal maps log|det| is zero and its gradient normal to them, so the
        change of variables needs no term here, and the cosine after both maps is the inner product x W V x.
        """
        xp = backend.namespace(maps)
        forward, backward = maps[0, ...], maps[1, ...]
        to_tgt, likelihood = tgt.attraction(x, forward, variance)
        to_src, likelihood_back = src.attraction(y, backward, variance)
        if self.back_translation:
            around_x, around_y = x.T @ x / x.shape[0], y.T @ y / y.shape[0]
            inverse_backward, inverse_forward = xp.matrix_transpose(backward), xp.matrix_transpose(forward)
            to_tgt = to_tgt + self.back_translation * (around_x @ inverse_backward + inverse_backward @ around_y)
            to_src = to_src + self.back_translation * (around_y @ inverse_forward + inverse_forward @ around_x)
        return xp.stack([to_tgt, to_src]), likelihood + likelihood_back

    def _judged(self, src: Mixture, tgt: Mixture, forward: Array) -> Best:
        w = polar(forward)
        return Best(quality.agreement(src.means, tgt.means, Maps(w), self.csls_k).mean_csls, w)

    # ----------------------------------------------------------------- what the settings mean

    def _steps_before(self, epoch: int) -> int:
        return epoch * self.epoch_steps

    def _progress(self, step: int) -> float:
        return step / max(1, self._steps_before(self.epochs) - 1)

    def _sigma(self, step: int) -> float:
        return float(self.sigma * (self.final_sigma / self.sigma) ** self._progress(step))

    def _rate(self, step: int) -> float:
        return self.learning_rate * (1.0 - (1.0 - _FINAL_RATE) * self._progress(step))

    def _mixture(self, side: str, x: Array) -> Mixture:
        import torch

        n = clamped(f"components ({side})", self.components, x.shape[0])
        batch = clamped(f"batch_size ({side})", self.batch_size, n)
        log_ranks = torch.log(torch.arange(1, n + 1, dtype=torch.float64, device=x.device))
        return Mixture(x[:n, :], torch.log_softmax(-self.frequency_power * log_ranks, dim=0).to(x.dtype), batch)

    def _batches(self, side: Mixture, epoch: int, number: int) -> Array:
        """Words of each step of an epoch, (steps, b).

        One is drawn from each of b slices of equal mass: a batch as large as a uniform mixture holds every word once.
        """
        import torch

        size, device = side.batch, side.means.device
        generator = backend.torch_generator(backend.rng(self.seed, _SAMPLE_STREAM, epoch, number), side.means)
        drawn = torch.rand((self.epoch_steps, size), dtype=torch.float64, device=device, generator=generator)
        quantiles = (drawn + torch.arange(size, device=device)) / size
        running = torch.cumsum(torch.exp(side.log_weights.double()), dim=0)
        return torch.searchsorted(running / running[-1], quantiles, right=True).clamp_(max=side.means.shape[0] - 1)

    def _identical_pairs(self, run: Run) -> Array | None:
        """Gradient of the likelihood of words spelt alike among the components, (2, 1, d, d), or None."""
        if not self.identical:
            return None
        xp = backend.namespace(run.x)
        rows = [(i, j) for i, j in zip(*run.identical_rows(), strict=True) if max(i, j) < self.components]
        if not rows:
            logger.warning("no identical strings among the %d most frequent words: they are not used", self.components)
            return None
        x, y = (side[[int(pair[number]) for pair in rows], :] for number, side in enumerate((run.x, run.y)))
        product = x.T @ y / len(rows)
        return xp.stack([product, product.T])[:, None, ...]


class Best(NamedTuple):
    """A map (d, d) and the mean CSLS of its mutual translations."""

    mean_csls: float
    map: Array


@dataclass
class Training:
    """maps: (2, R, d, d), forward and backward maps of R restarts; mean, square: Adam's moments of their gradients."""

    maps: Array
    mean: Array
    square: Array
    best: Best

    def step(self, gradient: Array, rate: float, number: int) -> None:
        """One step of Adam, the `number`-th, along the orthogonal matrices."""
        # Without the part that would only stretch the maps, which is the larger one and would drown the other.
        xp = backend.namespace(gradient)
        turn = xp.matrix_transpose(self.maps) @ gradient
        gradient = self.maps @ ((turn - xp.matrix_transpose(turn)) / 2)
        self.mean = _MOMENTUM * self.mean + (1 - _MOMENTUM) * gradient
        self.square = _SQUARES_MOMENTUM * self.square + (1 - _SQUARES_MOMENTUM) * gradient * gradient
        mean = self.mean / (1 - _MOMENTUM**number)
        square = self.square / (1 - _SQUARES_MOMENTUM**number)
        moved = self.maps + rate * mean / (xp.sqrt(square) + _TINY)
        self.maps = polar_steps(moved)


@dataclass(frozen=True)
class Mixture:
    """Gaussian components of one space: means (n, d), unit rows, and log_weights (n,). batch: words a step draws."""

    means: Array
    log_weights: Array
    batch: int

    def attraction(self, samples: Array, maps: Array, variance: float) -> tuple[Array, Array]:
        """Where the likelihood of mapped samples pulls the maps.

        samples: (b, d) unit rows; maps: (R, d, d) orthogonal. Returns the gradient of variance times the mean
        log-likelihood (R, d, d), and the mean log-likelihood up to a constant (R,).
        """
        import torch

        # Of the squared distance of unit rows only the inner product varies.
        scores = ((samples @ maps) @ self.means.T) / variance + self.log_weights
        total = torch.logsumexp(scores, dim=-1, keepdim=True)
        responsible = scores.sub_(total).exp_()
        return samples.T @ (responsible @ self.means) / samples.shape[0], total.mean(dim=(-2, -1)) - 1.0 / variance
