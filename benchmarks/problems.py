"""Pairs of spaces that the accuracy benchmarks align: real ones, changed ones, and pairs with nothing in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.data import NOVELS, VOCABULARY, Task, bench_file, zhang
from qwp import Embeddings, Lexicon
from qwp.arrays import AnyFloats

Change = Callable[[Embeddings, Embeddings], tuple[Embeddings, Embeddings]]


@dataclass(frozen=True)
class Problem:
    """Two spaces and the gold dictionaries that score their alignment.

    forward, backward: a dictionary of each direction, or its file among the benchmark data. related: whether the
    spaces have anything in common.
    """

    name: str
    load: Callable[[], tuple[Embeddings, Embeddings]]
    forward: str | Lexicon | None = None
    backward: str | Lexicon | None = None
    related: bool = True


@cache
def space(file: str, words: int = VOCABULARY) -> Embeddings:
    """Load the most frequent words of a benchmark file."""
    return qwp.load(bench_file(file), max_vocab=words)


@cache
def _dictionary(file: str) -> Lexicon:
    return Lexicon.load(bench_file(file))


def dictionary(gold: str | Lexicon) -> Lexicon:
    """Return a dictionary, loaded if it is a benchmark file."""
    return gold if isinstance(gold, Lexicon) else _dictionary(gold)


def training(pair: str) -> str:
    """Return the training split of MUSE for a pair of languages."""
    return f"muse/{pair}.0-5000.txt"


def reverse(pair: str) -> str:
    """Return the other direction of a pair: "es-en" for "en-es"."""
    return "-".join(reversed(pair.split("-")))


# --------------------------------------------------------------------------- changes of a space


def like(original: Embeddings, vectors: AnyFloats) -> Embeddings:
    """Return the first words of a space with other vectors."""
    return Embeddings(list(original.words[: len(vectors)]), vectors.astype(np.float32))


def with_spectrum(
    original: Embeddings, *, power: float = 1.0, dim: int | None = None, words: int | None = None
) -> Embeddings:
    """Return the space on its first `dim` principal axes, standard deviations raised to `power`, in a random basis."""
    vectors = np.asarray(original.vectors[:words], dtype=np.float64)
    squares, axes = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    squares, axes = squares[::-1][:dim], axes[:, ::-1][:, :dim]
    rotation, _ = np.linalg.qr(np.random.default_rng(len(squares)).standard_normal((len(squares), len(squares))))
    return like(original, (vectors @ axes * squares ** ((power - 1) / 2)) @ rotation)


def reordered(original: Embeddings, order: npt.NDArray[np.int64]) -> Embeddings:
    """Return the words in another order."""
    return Embeddings([original.words[i] for i in order], np.asarray(original.vectors)[order])


def shuffled(original: Embeddings, seed: int = 0) -> Embeddings:
    """Return the words in random order."""
    return reordered(original, np.random.default_rng(seed).permutation(len(original)))


def noisy_rows(original: Embeddings, share: float, seed: int) -> npt.NDArray[np.int64]:
    """Return the rows that `with_noise` replaces."""
    return np.random.default_rng(seed).permutation(len(original))[: round(share * len(original))]


def with_noise(original: Embeddings, share: float = 0.1, seed: int = 0) -> Embeddings:
    """Replace a share of the vectors by noise of the same lengths."""
    vectors = np.array(original.vectors, dtype=np.float32)
    rows = noisy_rows(original, share, seed)
    noise = np.random.default_rng(seed + 1).standard_normal((len(rows), vectors.shape[1]))
    lengths = np.linalg.norm(vectors[rows], axis=1, keepdims=True)
    vectors[rows] = noise / np.linalg.norm(noise, axis=1, keepdims=True) * lengths
    return like(original, vectors)


def with_permuted_columns(original: Embeddings, seed: int = 0) -> Embeddings:
    """Permute each column independently: the variances stay, the words lose their vectors."""
    vectors = np.array(original.vectors, dtype=np.float32)
    np.random.default_rng(seed).permuted(vectors, axis=0, out=vectors)
    return like(original, vectors)


def gaussian(original: Embeddings, seed: int = 0) -> Embeddings:
    """Replace all vectors by Gaussian noise."""
    return like(original, np.random.default_rng(seed).standard_normal(original.vectors.shape))


def first(words: int) -> Change:
    """Return the change that cuts both spaces to their most frequent words."""
    return lambda src, tgt: (like(src, src.vectors[:words]), like(tgt, tgt.vectors[:words]))


def projected(dim: int, power: float = 1.0) -> Change:
    """Return the change to 10,000 words on `dim` principal axes; `power` changes the target spectrum."""
    return lambda src, tgt: (
        with_spectrum(src, dim=dim, words=10_000),
        with_spectrum(tgt, dim=dim, words=10_000, power=power),
    )


def with_target_spectrum(power: float) -> Change:
    """Return the change that raises the standard deviations of the target axes to a power."""
    return lambda src, tgt: (src, with_spectrum(tgt, power=power))


def _alphabetical(original: Embeddings) -> Embeddings:
    return reordered(original, np.argsort(np.array(original.words)))


def _reversed(original: Embeddings) -> Embeddings:
    return reordered(original, np.arange(len(original))[::-1])


ORDERS: dict[str, Change] = {
    "given": lambda src, tgt: (src, tgt),
    "target shuffled": lambda src, tgt: (src, shuffled(tgt)),
    "both shuffled": lambda src, tgt: (shuffled(src, 1), shuffled(tgt)),
    "by the alphabet": lambda src, tgt: (_alphabetical(src), _alphabetical(tgt)),
    "reversed": lambda src, tgt: (_reversed(src), _reversed(tgt)),
}


# --------------------------------------------------------------------------- problems


def of_task(task: Task, words: int = VOCABULARY) -> Problem:
    """Return the most frequent words of a task with its test dictionary."""
    name = task.name if words == VOCABULARY else f"{task.name}, {words} words"
    return Problem(name, lambda: (space(task.src, words), space(task.tgt, words)), task.lexicon)


def development(pair: str, what: str = "", change: Change = ORDERS["given"]) -> Problem:
    """Return a pair of novels, perhaps changed, scored on the training split in both directions."""
    files = [f"novels/{language}.npz" for language in pair.split("-")]
    name = f"novels {pair}, {what}" if what else f"novels {pair}"
    return Problem(name, lambda: change(*map(space, files)), training(pair), training(reverse(pair)))


def demo_problem() -> Problem:
    """Return the packaged vectors with the training split."""
    files = [Path(qwp.__file__).parent / "data" / "demo" / f"{language}.npz" for language in ("en", "es")]
    name = "demo en-es, 5,000 x 100"
    return Problem(name, lambda: (qwp.load(files[0]), qwp.load(files[1])), training("en-es"), training("es-en"))


def development_problems() -> list[Problem]:
    """Return the problems that settings are chosen on: two kinds of vectors, three languages, 50 to 300 dimensions."""
    return [
        *(development(pair) for pair in NOVELS[::2]),
        demo_problem(),
        development("en-fr", "10,000 x 100", projected(100)),
        development("en-de", "10,000 x 50", projected(50)),
    ]


def odd_problems() -> list[Problem]:
    """Return pairs whose sides match less well: another spectrum, noise, no order of frequency."""
    changes: dict[str, Change] = {
        **{f"target spectrum to the power {power:g}": with_target_spectrum(power) for power in (0.3, 2.0)},
        "10 % noise": lambda s, t: (s, with_noise(t)),
        "30 % noise": lambda s, t: (s, with_noise(t, 0.3)),
        "target shuffled": ORDERS["target shuffled"],
        "both shuffled": ORDERS["both shuffled"],
        "2,000 words": first(2000),
        "10,000 x 50 against another spectrum": projected(50, power=0.5),
    }
    return [development(pair, name, change) for pair in NOVELS[::4] for name, change in changes.items()]


def unrelated_problems(seed: int) -> list[Problem]:
    """Return pairs with nothing in common."""
    english, spanish = partial(space, "novels/en.npz"), partial(space, "novels/es.npz")
    short = partial(space, "zhang2017/es-en/en.vec")
    pairs: dict[str, Callable[[], tuple[Embeddings, Embeddings]]] = {
        "novels en against noise": lambda: (english(), gaussian(spanish(), seed)),
        "novels en against es with mixed columns": lambda: (english(), with_permuted_columns(spanish(), seed)),
        "zhang en against noise": lambda: (short(), gaussian(short(), seed)),
        "zhang en against itself with mixed columns": lambda: (short(), with_permuted_columns(short(), seed)),
        "noise against noise": lambda: (gaussian(short(), seed + 50), gaussian(short(), seed)),
    }
    return [Problem(name, load, related=False) for name, load in pairs.items()]


def small_problems() -> list[Problem]:
    """Return pairs of few words, on which the method may fail and the verdict has little evidence."""
    found = []
    for words in (500, 1000, 2000):
        found += [development(pair, f"{words} words", first(words)) for pair in NOVELS[::2]]
        found += [of_task(zhang(pair), words) for pair in ("es-en", "it-en")]
    return [*found, *(encyclopaedia_against_novels(pair) for pair in ("es-en", "en-es"))]


def encyclopaedia_against_novels(pair: str) -> Problem:
    """Return vectors of Wikipedia against those of the novels, 50 dimensions each.

    Procrustes fitted to the gold dictionary itself reaches 27 % on this pair.
    """
    src, tgt = pair.split("-")
    return Problem(
        f"zhang {src} against novels {tgt}",
        lambda: (
            space(f"zhang2017/es-en/{src}.vec"),
            with_spectrum(space(f"novels/{tgt}.npz"), dim=50, words=10_000),
        ),
        training(pair),
        training(reverse(pair)),
    )
