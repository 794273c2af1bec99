"""Adversarial training (Conneau et al. 2018) of a mapper against a discriminator between the two languages."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array, Stream, Tensor, unit
from qwp.maps.procrustes import Maps, polar
from qwp.methods.aligner import Aligner
from qwp.parameters import LOOP, MOST_SIZE, MOST_STEPS, MOST_WORDS, OTHER, RUN, TRAIN_WORDS, param
from qwp.search.retrieval import cross_neighbours, csls_k_param
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem
from qwp.stages.refinement import CslsRefinement
from qwp.stages.stage import Monitor, Stage, State, clamped

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class AdversarialTraining(Stage):
    """Train a mapper against a discriminator, from the identity; return the map of the best epoch."""

    name = "train"

    epochs: int = param(12, "Epochs of the training.", LOOP, least=0, most=MOST_STEPS)
    steps: int = param(500, "Mapper steps of an epoch.", LOOP, least=1, most=MOST_STEPS)
    batch_size: int = param(32, "Words of each side in one step.", OTHER, least=1, most=MOST_SIZE)
    hidden_size: int = param(512, "Size of the two hidden layers of the discriminator.", OTHER, least=1, most=100_000)
    discriminator_steps: int = param(
        2, "Steps of the discriminator for each step of the mapper.", OTHER, least=1, most=1000
    )
    learning_rate: float = param(0.2, "Initial learning rate of the discriminator.", LOOP, above=0, most=1e6)
    mapper_rate: float = param(30.0, "Initial learning rate of the mapper.", OTHER, above=0, most=1e6)
    rate_decay: float = param(
        0.98,
        "Factor of both rates from one epoch to the next; they are also halved when the criterion fell.",
        OTHER,
        above=0,
        most=1,
    )
    dropout: float = param(0.1, "Dropout of the inputs of the discriminator.", OTHER, least=0, most=0.99)
    smoothing: float = param(
        0.2, "How far the labels of the discriminator are moved from 0 and 1.", OTHER, least=0, most=0.49
    )
    beta: float = param(
        0.2, "How strongly the map is pulled back to orthogonal after a step.", OTHER, least=0, most=0.5
    )
    train_words: int = param(50_000, TRAIN_WORDS, RUN, least=1, most=MOST_WORDS)
    criterion_words: int = param(
        10_000,
        "Most frequent words whose translations choose the best epoch.",
        OTHER,
        least=1,
        most=MOST_WORDS,
    )
    csls_k: int = csls_k_param()
    leak: float = 0.2
    """Slope of the leaky ReLU. Source: the paper."""
    mask_elements: int = 1 << 22
    """Numbers in a block of dropout masks, which are drawn in advance."""

    def __call__(self, problem: Problem, state: State, monitor: Monitor) -> State:
        """Return the state with the map of the best epoch."""
        view = problem.view_of(state.order)
        most = max(view.x.shape[0], view.y.shape[0])
        words = clamped("train_words", self.train_words, most)
        criterion_words = clamped("criterion_words", self.criterion_words, most)
        game = _Game(view.x[:words, :], view.y[:words, :], self, problem.seed)
        best_map = game.map()
        values = {"share": 1.0, "criterion": -math.inf, "best": -math.inf, **state.values}
        if state.maps is not None:
            game.restore(state.map, state.tensors)
            best_map = state.tensors["best_map"]
        with arrays.RepeatedStep(game.step, view.x) as repeated:
            for epoch in range(state.done + 1, self.epochs + 1):
                loss = game.epoch(repeated, epoch, values["share"])
                w = game.map()
                criterion = mean_cosine(view.x[:criterion_words, :], view.y[:criterion_words, :], w, self.csls_k)
                if not math.isfinite(criterion):
                    logger.warning("the training diverged in epoch %d; lower mapper_rate or learning_rate", epoch)
                    break
                rate = values["share"] * self.learning_rate
                if criterion > values["best"]:
                    best_map = w
                    values["best"] = criterion
                values["share"] *= self.rate_decay * (0.5 if criterion < values["criterion"] else 1.0)
                values["criterion"] = criterion
                state = state.after_step(
                    self.name,
                    epoch,
                    Maps(w),
                    {"criterion": criterion, "discriminator_loss": loss, "rate": rate},
                    tensors={"best_map": best_map, **game.tensors()},
                    values=dict(values),
                )
                monitor.step(state, self.epochs)
        return state.after_step(self.name, self.epochs, Maps(polar(best_map)))


class Adversarial(Aligner):
    """Adversarial training of a mapper from the identity, then CSLS refinement.

    Conneau, Lample, Ranzato, Denoyer, Jegou (2018), Word translation without parallel data. The discriminator (two
    hidden layers of `hidden_size`, leaky ReLU, input `dropout`, labels smoothed by `smoothing`) learns to distinguish
    mapped source vectors from target vectors, both sampled from the `train_words` most frequent words. After every
    `discriminator_steps` of its steps the mapper makes one against it, followed by
    W <- (1 + beta) W - beta (W W^T) W, which keeps W near the orthogonal matrices. Both use plain SGD. After each epoch
    of `steps` mapper steps the rates are multiplied by `rate_decay`. They are also halved if the criterion fell, the
    mean cosine of the CSLS translations of the `criterion_words` most frequent words. The map of the epoch with the
    highest criterion is returned.

    The paper gives both players a rate of 0.1. Rows have length one here, so the gradient of the map is small and the
    mapper needs a larger `mapper_rate`. The training is a game and may fail: try several seeds, and let the verdict
    choose among them.
    """

    method = "adversarial"
    summary = "discriminator against mapper, then refinement"
    paper = "Conneau et al. 2018"
    needs_torch = True
    pipeline = Pipeline(solve=AdversarialTraining(), refine=CslsRefinement())


def mean_cosine(x: Array, y: Array, w: Array, csls_k: int) -> float:
    """Return the unsupervised criterion: the mean cosine of x (n, d) under w with its CSLS translations in y (m, d)."""
    xp = arrays.namespace(x)
    mapped = unit(x @ w)
    translations = xp.take(y, cross_neighbours(mapped, y, csls_k=csls_k).forward, axis=0)
    return float(xp.mean(xp.sum(mapped * translations, axis=1)))


class _Game:
    """The two players and their step.

    A step works in place, and random numbers are drawn in advance, so that CUDA can record it.
    """

    def __init__(self, x: Tensor, y: Tensor, settings: AdversarialTraining, seed: int) -> None:
        """x: (n, d), y: (m, d) torch tensors."""
        import torch

        self._x, self._y, self._settings, self._seed = x, y, settings, seed
        d, size, hidden = x.shape[1], settings.batch_size, settings.hidden_size
        like = {"dtype": x.dtype, "device": x.device}
        self._map = torch.eye(d, **like).requires_grad_()
        random = self._generator(0)
        self._weights = []
        for n_in, n_out in ((d, hidden), (hidden, hidden), (hidden, 1)):
            for shape in ((n_out, n_in), (n_out,)):
                bound = 1 / math.sqrt(n_in)
                weight = torch.empty(shape, **like).uniform_(-bound, bound, generator=random)
                self._weights.append(weight.requires_grad_())
        smoothing = settings.smoothing
        self._labels = torch.cat([torch.full((size,), label, **like) for label in (1 - smoothing, smoothing)])
        self._rates = torch.zeros(2, **like)
        self._loss = torch.zeros((), **like)

        discriminator_steps = settings.discriminator_steps
        self._ahead = min(settings.steps, max(1, settings.mask_elements // (discriminator_steps * 2 * size * d)))
        self._next = torch.zeros(1, dtype=torch.int64, device=x.device)
        self._rows = [
            torch.zeros((self._ahead, discriminator_steps + 1, size), dtype=torch.int64, device=x.device)
            for _ in range(2)
        ]
        self._masks = torch.zeros((self._ahead, discriminator_steps, 2 * size, d), **like)

    def _generator(self, epoch: int) -> Tensor:
        """Return the random stream of an epoch."""
        return arrays.torch_generator(arrays.rng(self._seed, Stream.ADVERSARIAL, epoch), self._x)

    def map(self) -> Tensor:
        """Return a copy of the map (d, d)."""
        return self._map.detach().clone()

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights of the discriminator for a saved state."""
        return {f"weight{i}": weight for i, weight in enumerate(self._weights)}

    def restore(self, w: Tensor, tensors: Mapping[str, Tensor]) -> None:
        """Restore a saved map (d, d) and discriminator."""
        import torch

        with torch.no_grad():
            self._map.copy_(w)
            for name, weight in self.tensors().items():
                weight.copy_(tensors[name])

    def epoch(self, repeated: arrays.RepeatedStep, number: int, share: float) -> float:
        """Run all steps of an epoch and return the mean loss of the discriminator. share: factor of both rates."""
        settings, random = self._settings, self._generator(number)
        self._rates[0], self._rates[1] = share * settings.learning_rate, share * settings.mapper_rate
        self._loss.zero_()
        for first in range(0, settings.steps, self._ahead):
            self._draw(random)
            repeated.run(min(self._ahead, settings.steps - first))
        return float(self._loss) / settings.steps

    def _draw(self, random: Tensor) -> None:
        """Draw the words and the dropout masks of the next steps."""
        for rows, side in zip(self._rows, (self._x, self._y), strict=True):
            rows.random_(0, side.shape[0], generator=random)
        keep = 1 - self._settings.dropout
        self._masks.bernoulli_(keep, generator=random).div_(keep)
        self._next.zero_()

    def step(self) -> None:
        """Make the steps of the discriminator, then one of the mapper."""
        import torch

        src_rows, tgt_rows = (rows.index_select(0, self._next)[0] for rows in self._rows)
        masks = self._masks.index_select(0, self._next)[0]
        for number in range(self._settings.discriminator_steps):
            with torch.no_grad():
                vectors = self._vectors(src_rows[number], tgt_rows[number]) * masks[number]
            loss = self._descend(self._weights, self._rates[0], vectors, self._labels)
        self._loss += loss
        self._descend([self._map], self._rates[1], self._vectors(src_rows[-1], tgt_rows[-1]), 1 - self._labels)
        with torch.no_grad():
            w, beta = self._map, self._settings.beta
            w.copy_((1 + beta) * w - beta * (w @ w.T) @ w)
        self._next += 1

    def _vectors(self, src_rows: Tensor, tgt_rows: Tensor) -> Tensor:
        """Return mapped source vectors followed by target vectors, (2 b, d). src_rows, tgt_rows: (b,)."""
        import torch

        return torch.cat([self._x[src_rows] @ self._map, self._y[tgt_rows]])

    def _descend(self, players: Sequence[Tensor], rate: Tensor, vectors: Tensor, labels: Tensor) -> Tensor:
        """Move the players against the gradient of the loss of the discriminator, and return the loss.

        vectors: (2 b, d); labels: (2 b,) target probabilities of "source".
        """
        import torch
        from torch.nn import functional

        first, first_bias, second, second_bias, last, last_bias = self._weights
        hidden = functional.leaky_relu(functional.linear(vectors, first, first_bias), self._settings.leak)
        hidden = functional.leaky_relu(functional.linear(hidden, second, second_bias), self._settings.leak)
        scores = functional.linear(hidden, last, last_bias)[:, 0]
        loss = functional.binary_cross_entropy_with_logits(scores, labels)
        gradients = torch.autograd.grad(loss, players)
        with torch.no_grad():
            for player, gradient in zip(players, gradients, strict=True):
                change = rate * gradient
                # The change is clipped to length one, because a single large gradient makes the training diverge.
                player -= change / torch.clamp(torch.linalg.vector_norm(change), min=1.0)
        return loss.detach()
