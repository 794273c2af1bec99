"""Words by which a reader can see what an alignment is worth: neither grammar nor rare."""

from __future__ import annotations

from qwp.results.sides import AlignedSide

_RANKS = slice(100, 1000)


def content_words(side: AlignedSide) -> list[str]:
    """Words of middle frequency that look like content words, most frequent first."""
    ranks = side.frequent(_RANKS.stop).tolist()
    words = [side.space.words[row] for row in ranks[_RANKS] or ranks]
    return [word for word in words if looks_like_content(word)]


def some_words(side: AlignedSide, n: int) -> list[str]:
    """n words, or fewer, spread over the content words; over all frequent words where too few look like one."""
    words = content_words(side)
    if len(words) < n:
        words = [side.space.words[row] for row in side.frequent(_RANKS.stop)]
    return words[:: max(1, len(words) // n)][:n]


def looks_like_content(word: str) -> bool:
    """Has letters and, in scripts that have capitals and therefore spell by sounds, at least four characters."""
    has_letters = any(character.isalpha() for character in word)
    return has_letters and (len(word) > 3 or word.lower() == word.upper())
