"""The packaged demo: its hand-written lexicon is well formed and fits the vocabularies it is scored on."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

DEMO = Path(str(files("qwp"))) / "data" / "demo"


def read_pairs() -> list[tuple[str, str]]:
    """Return every (english, spanish) line of the lexicon; each must have exactly one tab."""
    lines = (DEMO / "en-es.tsv").read_bytes().decode("utf-8").split("\n")
    assert lines[-1] == "", "the file ends with a newline"
    pairs = []
    for number, line in enumerate(lines[:-1], start=1):
        fields = line.split("\t")
        assert len(fields) == 2, f"line {number}: {line!r}"
        pairs.append((fields[0], fields[1]))
    return pairs


def vocabulary(language: str) -> list[str]:
    with np.load(DEMO / f"{language}.npz", allow_pickle=False) as archive:
        return [str(word) for word in archive["words"]]


def test_every_field_is_one_lower_case_word() -> None:
    for pair in read_pairs():
        for word in pair:
            assert word
            assert word == word.strip().lower()
            assert not any(character.isspace() for character in word)
            assert word.replace("-", "").isalpha()


def test_pairs_are_distinct_and_grouped_by_source_word() -> None:
    pairs = read_pairs()
    assert len(set(pairs)) == len(pairs)
    # All translations of a word are adjacent, so that a reader sees the whole entry.
    runs = [a for (a, _), (b, _) in zip(pairs, [("", ""), *pairs], strict=False) if a != b]
    assert len(runs) == len(set(runs))


def test_there_are_enough_source_words() -> None:
    assert len({source for source, _ in read_pairs()}) >= 400


def test_at_least_nine_in_ten_source_words_are_covered() -> None:
    english, spanish = set(vocabulary("en")), set(vocabulary("es"))
    pairs = read_pairs()
    sources = {source for source, _ in pairs}
    covered = {source for source, target in pairs if source in english and target in spanish}
    assert len(covered) / len(sources) >= 0.9


def test_inflected_forms_and_both_genders_are_present() -> None:
    pairs = set(read_pairs())
    expected = {("good", "bueno"), ("good", "buena"), ("went", "fue"), ("said", "dijo"), ("said", "dicho")}
    assert expected <= pairs


@pytest.mark.parametrize("language", ["en", "es"])
def test_vectors_match_their_words(language: str) -> None:
    words = vocabulary(language)
    with np.load(DEMO / f"{language}.npz", allow_pickle=False) as archive:
        vectors = archive["vectors"]
    assert vectors.shape[0] == len(words) == len(set(words))
    assert np.isfinite(vectors).all()
