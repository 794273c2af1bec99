"""Translations of words, and what is to be said of words that a vocabulary lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings, Side


@dataclass(frozen=True)
class Translation:
    """A target word and its score (CSLS, with or without spelling, cosine or log-probability, as was asked for)."""

    word: str
    score: float


@dataclass(frozen=True)
class Asked:
    """Words that are asked about, each once and in their order, and which of them a vocabulary has.

    hints: for some unknown words the same word in another case, which is there. composed: those of the known words that
    are not in the vocabulary and have a vector from their subwords.
    """

    vocabulary: Embeddings
    known: list[str]
    unknown: list[str]
    hints: Mapping[str, str]
    composed: list[str]

    @classmethod
    def of(cls, words: Iterable[str], vocabulary: Embeddings) -> Asked:
        """Look the words up."""
        asked = list(dict.fromkeys(words))
        if not asked:
            raise InputError("no word was given; expected at least one")
        outside = [word for word in asked if word not in vocabulary]
        cases = {word: (word.lower(), word.capitalize(), word.upper()) for word in outside}
        hints = {word: next((c for c in found if c in vocabulary), None) for word, found in cases.items()}
        composed = vocabulary.composed(outside)
        return cls(
            vocabulary,
            [word for word in asked if word in vocabulary or word in composed],
            [word for word in outside if word not in composed],
            {word: hint for word, hint in hints.items() if hint is not None},
            list(composed),
        )

    def explained(self, word: str, where: str) -> str:
        """What is to be said of an unknown word. where: what the vocabulary belongs to."""
        hint = f"; {self.hints[word]!r} is there" if word in self.hints else ""
        made = ", so its vector is that of its subwords" if word in self.composed else ""
        return f"{word!r} is not among the {len(self.vocabulary):,} words of {where}{made}{hint}"

    def none_known(self, side: Side, turn: str, *, told: bool = False) -> InputError:
        """The error where all words are unknown. turn: how the other direction is asked for; told: each was named."""
        named = {"src": "source", "tgt": "target"}[side]
        words = "" if told else f" ({_few(self.unknown)})"
        there = f" ({_few(self.hints.values())} would be there)" if self.hints and not told else ""
        count = len(self.unknown)
        missing = f"{self.unknown[0]!r} is not" if count == 1 else f"none of the {count} words{words} is"
        return InputError(
            f"{missing} among the {len(self.vocabulary):,} words of the {named} "
            f"side (such as {', '.join(self.vocabulary.words[:3])}): check the spelling{there} and the direction "
            f"({'leave out' if side == 'tgt' else 'try'} {turn})"
        )


def _few(words: Iterable[str], most: int = 5) -> str:
    shown = [repr(word) for word in words]
    return ", ".join(shown[:most] + ["..."] * (len(shown) > most))


class Translations(dict[str, list[Translation]]):
    """The translations of each known word, best first. It is a dict by word that also knows what it lacks.

    unknown: the words that were asked for and are not in the vocabulary. hints: for some of them the same word in
    another case, which is there. composed: the words that are not in the vocabulary either, and were translated by the
    vectors of their subwords.
    """

    def __init__(
        self,
        found: Mapping[str, list[Translation]] | Iterable[tuple[str, list[Translation]]] = (),
        unknown: Iterable[str] = (),
        hints: Mapping[str, str] | None = None,
        composed: Iterable[str] = (),
    ) -> None:
        super().__init__(found)
        self.unknown = list(unknown)
        self.composed = list(composed)
        self.hints = dict(hints or {})

    def __missing__(self, word: str) -> NoReturn:
        """Say why a word is not there."""
        if word not in self.unknown:
            raise KeyError(word)
        hint = f"; {self.hints[word]!r} is there" if word in self.hints else ""
        raise KeyError(f"{word!r} is not in the vocabulary{hint}")

    def __repr__(self) -> str:
        found = super().__repr__()
        return f"Translations({found}, unknown={self.unknown})" if self.unknown else found
