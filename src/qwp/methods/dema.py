"""Density matching (Zhou et al. 2019): each space is a Gaussian mixture, and a map carries one onto the other."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import NamedTuple

from qwp import arrays
from qwp.arrays import Stream, Tensor
from qwp.errors import InputError
from qwp.maps.procrustes import Maps, polar, polar_steps
from qwp.methods.aligner import Aligner
from qwp.parameters import LOOP, MOST_SIZE, MOST_STEPS, OTHER, RUN, START, TRAIN_WORDS, param
from qwp.search.retrieval import csls_k_param
from qwp.stages.agreement import agreement, random_rotation
from qwp.stages.init.profiles import Profiles
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem, View
from qwp.stages.refinement import CslsRefinement
from qwp.stages.stage import Monitor, Stage, State, clamped

logger = logging.getLogger(__name__)

STARTS = ("random", "identity", "profiles")


@dataclass(frozen=True, kw_only=True)
class DensityMatching(Stage):
    """Maximise the likelihood of each mapped space under the Gaussian mixture of the other."""

    name = "train"

    start: str = param("random", "The initial map: random, identity or profiles.", START, choices=STARTS)
    restarts: int = param(8, "Random initial maps that are trained in parallel.", OTHER, least=1, most=10_000)
    train_words: int = param(1000, TRAIN_WORDS, RUN, least=1, most=MOST_SIZE)
    frequency_power: float = param(
        0.0, "Weights of the Gaussians: rank to minus this power; 0 is equal.", OTHER, least=0, most=10
    )
    sigma: float = param(0.6, "Standard deviation of the Gaussians at the beginning.", OTHER, above=0.001, most=1000)
    final_sigma: float = param(
        0.3, "Standard deviation of the Gaussians at the end, at most --sigma.", OTHER, above=0.001, most=1000
    )
    back_translation: float = param(
        0.1, "Weight of the cosine between a word and itself after both maps.", OTHER, least=0, most=1e6
    )
    identical: bool = param(False, "Also use words that both sides spell alike.", OTHER)
    identical_weight: float = param(1.0, "Weight of those words.", OTHER, least=0, most=1e6)
    epochs: int = param(12, "Epochs of the training; the maps are scored after each.", LOOP, least=1, most=MOST_STEPS)
    epoch_steps: int = param(50, "Steps of an epoch.", OTHER, least=1, most=MOST_STEPS)
    batch_size: int = param(300, "Words of each side in one step.", OTHER, least=1, most=MOST_SIZE)
    learning_rate: float = param(
        0.3, "About the angle in radians by which the first steps turn a word.", LOOP, above=0, most=1000
    )
    csls_k: int = csls_k_param()
    profiles: Profiles = Profiles()
    momentum: float = 0.9
    squares_momentum: float = 0.99
    """The decay rates of Adam for the mean and the mean square of the gradients."""
    final_rate: float = 0.1
    """Share of the learning rate that is left at the last step."""

    def check_together(self) -> None:
        """Raise an InputError if the deviation would grow."""
        if self.final_sigma > self.sigma:
            raise InputError(
                f"final_sigma={self.final_sigma} should be at most sigma={self.sigma}: it decreases during the training"
            )

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the best map of all epochs and restarts."""
        view, seed = problem.view_of(state.order), problem.seed
        training = self._untrained(view, seed)
        if state.maps is not None:
            best = Best(float(state.values["mean_csls"]), state.map)
            saved = state.tensors
            training = Training(saved["maps"], saved["mean"], saved["square"], best)
        src, tgt = self._mixture("source", view.x), self._mixture("target", view.y)
        pairs = self._identical_pairs(view)
        for epoch in range(state.done, self.epochs):
            likelihood = self._train_epoch(training, src, tgt, pairs, epoch, seed)
            scored = [self._scored(src, tgt, forward) for forward in training.maps[0, ...]]
            training.best = max(training.best, *scored, key=lambda best: best.mean_csls)
            figures = {
                "sigma": self._sigma(self._steps_before(epoch + 1) - 1),
                "log_likelihood": float(likelihood.max()),
                "mean_csls": max(best.mean_csls for best in scored),
                "best_mean_csls": training.best.mean_csls,
            }
            state = state.after_step(
                self.name,
                epoch + 1,
                Maps(training.best.map),
                figures,
                tensors={"maps": training.maps, "mean": training.mean, "square": training.square},
                values={"mean_csls": training.best.mean_csls},
            )
            monitor.step(state, self.epochs)
        return state

    def _untrained(self, view: View, seed: int) -> Training:
        xp = arrays.namespace(view.x)
        forward = xp.stack(self._starts(view, seed))
        maps = xp.stack([forward, xp.matrix_transpose(forward)])
        return Training(maps, xp.zeros_like(maps), xp.zeros_like(maps), Best(-math.inf, forward[0, ...]))

    def _starts(self, view: View, seed: int) -> list[Tensor]:
        """Return the initial maps (d, d): one for each restart if they are random, otherwise one."""
        x, dim = view.x, view.x.shape[1]
        if self.start == "profiles":
            return [self.profiles.solve(x, view.y)]
        if self.start == "identity":
            return [arrays.namespace(x).eye(dim, dtype=x.dtype, device=arrays.device(x))]
        draws = (arrays.rng(seed, Stream.DENSITY_START, number) for number in range(self.restarts))
        return [random_rotation(dim, int(rng.integers(2**31)), x) for rng in draws]

    def _train_epoch(
        self, training: Training, src: Mixture, tgt: Mixture, pairs: Tensor | None, epoch: int, seed: int
    ) -> Tensor:
        """Run all steps of an epoch; return the log-likelihood of the restarts, summed over both directions, (R,)."""
        words_src, words_tgt = (self._batches(side, epoch, number, seed) for number, side in enumerate((src, tgt)))
        likelihood = None
        for number in range(self.epoch_steps):
            step = self._steps_before(epoch) + number
            variance = self._sigma(step) ** 2
            x, y = src.means[words_src[number, :], :], tgt.means[words_tgt[number, :], :]
            gradient, likelihood = self._gradient(training.maps, x, y, src, tgt, variance)
            if pairs is not None:
                gradient = gradient + self.identical_weight * pairs
            training.step(gradient, self._rate(step) / src.means.shape[1] ** 0.5, step + 1, self)
        return likelihood

    def _gradient(
        self, maps: Tensor, x: Tensor, y: Tensor, src: Mixture, tgt: Mixture, variance: float
    ) -> tuple[Tensor, Tensor]:
        """Return the gradient of variance times the objective in maps (2, R, d, d), and the log-likelihood (R,).

        x: (b, d), y: (c, d) samples. For orthogonal maps log|det| is zero and its gradient is normal to them, so the
        change of variables adds no term. The cosine after both maps is the inner product x W V x.
        """
        xp = arrays.namespace(maps)
        forward, backward = maps[0, ...], maps[1, ...]
        to_tgt, likelihood = tgt.attraction(x, forward, variance)
        to_src, likelihood_back = src.attraction(y, backward, variance)
        if self.back_translation:
            around_x, around_y = x.T @ x / x.shape[0], y.T @ y / y.shape[0]
            inverse_backward, inverse_forward = xp.matrix_transpose(backward), xp.matrix_transpose(forward)
            to_tgt = to_tgt + self.back_translation * (around_x @ inverse_backward + inverse_backward @ around_y)
            to_src = to_src + self.back_translation * (around_y @ inverse_forward + inverse_forward @ around_x)
        return xp.stack([to_tgt, to_src]), likelihood + likelihood_back

    def _scored(self, src: Mixture, tgt: Mixture, forward: Tensor) -> Best:
        w = polar(forward)
        return Best(agreement(src.means, tgt.means, Maps(w), self.csls_k).mean_csls, w)

    # ----------------------------------------------------------------- schedules and samples

    def _steps_before(self, epoch: int) -> int:
        return epoch * self.epoch_steps

    def _progress(self, step: int) -> float:
        return step / max(1, self._steps_before(self.epochs) - 1)

    def _sigma(self, step: int) -> float:
        return float(self.sigma * (self.final_sigma / self.sigma) ** self._progress(step))

    def _rate(self, step: int) -> float:
        return self.learning_rate * (1.0 - (1.0 - self.final_rate) * self._progress(step))

    def _mixture(self, side: str, x: Tensor) -> Mixture:
        import torch

        n = clamped(f"train_words ({side})", self.train_words, x.shape[0])
        batch = clamped(f"batch_size ({side})", self.batch_size, n)
        log_ranks = torch.log(torch.arange(1, n + 1, dtype=torch.float64, device=x.device))
        return Mixture(x[:n, :], torch.log_softmax(-self.frequency_power * log_ranks, dim=0).to(x.dtype), batch)

    def _batches(self, side: Mixture, epoch: int, number: int, seed: int) -> Tensor:
        """Return the words of each step of an epoch, (steps, b).

        One word is drawn from each of b strata of equal mass. A batch as large as a uniform mixture has each word once.
        """
        import torch

        size, device = side.batch, side.means.device
        generator = arrays.torch_generator(arrays.rng(seed, Stream.DENSITY_SAMPLE, epoch, number), side.means)
        drawn = torch.rand((self.epoch_steps, size), dtype=torch.float64, device=device, generator=generator)
        quantiles = (drawn + torch.arange(size, device=device)) / size
        running = torch.cumsum(torch.exp(side.log_weights.double()), dim=0)
        return torch.searchsorted(running / running[-1], quantiles, right=True).clamp_(max=side.means.shape[0] - 1)

    def _identical_pairs(self, view: View) -> Tensor | None:
        """Return the gradient of the likelihood of words that both sides spell alike, (2, 1, d, d), or None."""
        if not self.identical:
            return None
        xp = arrays.namespace(view.x)
        rows = [(i, j) for i, j in zip(*view.identical_pairs(), strict=True) if max(i, j) < self.train_words]
        if not rows:
            logger.warning("no identical strings among the %d most frequent words: they are not used", self.train_words)
            return None
        x, y = (side[[int(pair[number]) for pair in rows], :] for number, side in enumerate((view.x, view.y)))
        product = x.T @ y / len(rows)
        return xp.stack([product, product.T])[:, None, ...]


class DeMa(Aligner):
    """Maximum likelihood of each mapped space under the Gaussian mixture of the other, then CSLS refinement.

    Zhou, Ma, Wang, Neubig (2019), Density matching for bilingual word embedding. The `train_words` most frequent words
    are the means of the mixture of their space, its weights are rank ** -frequency_power, its standard deviation falls
    geometrically from `sigma` to `final_sigma`: with wide components the likelihood has few local optima. Each
    direction has its own map; both are tied by `back_translation`, the weight of the cosine between a word and itself
    after both maps. Adam follows the gradient along the orthogonal matrices; `learning_rate` is about the angle, in
    radians, by which its first steps turn a word. `restarts` random initial maps are trained in
    parallel; the map with the highest mean CSLS of mutual translations after any epoch is returned. `identical` adds
    the likelihood of words that both sides spell alike, each under the component of its counterpart alone.
    """

    method = "dema"
    summary = "density matching of Gaussian mixtures in both directions, then refinement"
    paper = "Zhou et al. 2019"
    needs_torch = True
    pipeline = Pipeline(solve=DensityMatching(), refine=CslsRefinement())


class Best(NamedTuple):
    """A map (d, d) and the mean CSLS of its mutual translations."""

    mean_csls: float
    map: Tensor


@dataclass
class Training:
    """maps: (2, R, d, d), forward and backward maps of R restarts; mean, square: Adam's moments of their gradients."""

    maps: Tensor
    mean: Tensor
    square: Tensor
    best: Best

    def step(self, gradient: Tensor, rate: float, number: int, settings: DensityMatching) -> None:
        """Make step `number` of Adam on the orthogonal matrices."""
        # Project the gradient onto the tangent space: its normal component is larger and would dominate.
        xp = arrays.namespace(gradient)
        local = xp.matrix_transpose(self.maps) @ gradient
        gradient = self.maps @ ((local - xp.matrix_transpose(local)) / 2)
        decay, squares_decay = settings.momentum, settings.squares_momentum
        self.mean = decay * self.mean + (1 - decay) * gradient
        self.square = squares_decay * self.square + (1 - squares_decay) * gradient * gradient
        mean = self.mean / (1 - decay**number)
        square = self.square / (1 - squares_decay**number)
        moved = self.maps + rate * mean / (xp.sqrt(square) + 1e-12)
        self.maps = polar_steps(moved)


@dataclass(frozen=True)
class Mixture:
    """Gaussian components of one space: means (n, d), unit rows, and log_weights (n,). batch: words a step draws."""

    means: Tensor
    log_weights: Tensor
    batch: int

    def attraction(self, samples: Tensor, maps: Tensor, variance: float) -> tuple[Tensor, Tensor]:
        """Return the gradient of the likelihood of mapped samples in the maps, and the likelihood.

        samples: (b, d) unit rows; maps: (R, d, d) orthogonal. Returns the gradient of variance times the mean
        log-likelihood (R, d, d), and the mean log-likelihood up to a constant (R,).
        """
        import torch

        # The squared distance of unit rows depends on the inner product alone.
        scores = ((samples @ maps) @ self.means.T) / variance + self.log_weights
        total = torch.logsumexp(scores, dim=-1, keepdim=True)
        responsible = scores.sub_(total).exp_()
        return samples.T @ (responsible @ self.means) / samples.shape[0], total.mean(dim=(-2, -1)) - 1.0 / variance
