"""Translations, and words that a vocabulary lacks."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from qwp import Embeddings, InputError
from qwp.results.translations import Asked, Translation, Translations

VOCABULARY = Embeddings(["house", "Haus", "UNO", "water"], np.eye(4))


def test_words_are_looked_up_each_once_in_their_order() -> None:
    asked = Asked.of(["water", "x", "house", "water", "x"], VOCABULARY)
    assert (asked.known, asked.unknown, asked.hints) == (["water", "house"], ["x"], {})
    with pytest.raises(InputError, match="no word was given; expected at least one"):
        Asked.of([], VOCABULARY)


def test_a_word_in_another_case_is_a_hint() -> None:
    asked = Asked.of(["House", "haus", "uno", "Zzz"], VOCABULARY)
    assert asked.hints == {"House": "house", "haus": "Haus", "uno": "UNO"}
    assert asked.explained("House", "en-es") == "'House' is not among the 4 words of en-es; 'house' is there"
    assert asked.explained("Zzz", "en-es") == "'Zzz' is not among the 4 words of en-es"


def test_none_of_the_words_is_known() -> None:
    asked = Asked.of(["House", "x"], VOCABULARY)
    assert str(asked.none_known("src", "--reverse", told=True)) == (
        "none of the 2 words is among the 4 words of the source side (such as house, Haus, UNO): "
        "check the spelling and the direction (try --reverse)"
    )
    assert str(asked.none_known("tgt", 'side="tgt"')) == (
        "none of the 2 words ('House', 'x') is among the 4 words of the target side (such as house, Haus, UNO): "
        "check the spelling ('house' would be there) and the direction (leave out side=\"tgt\")"
    )
    one = Asked.of(["x"], VOCABULARY)
    assert str(one.none_known("src", "--reverse")).startswith("'x' is not among the 4 words of the source")
    many = Asked.of("abcdefgh", VOCABULARY)
    assert "('a', 'b', 'c', 'd', 'e', ...)" in str(many.none_known("src", ""))


def test_translations_are_a_dict_that_knows_what_it_lacks() -> None:
    best = [Translation("casa", 0.5)]
    found = Translations({"house": best}, ["House", "x"], {"House": "house"})
    assert found == {"house": best}
    assert isinstance(found, dict)
    assert list(found) == ["house"]
    assert found.unknown == ["House", "x"]
    assert repr(found) == ("Translations({'house': [Translation(word='casa', score=0.5)]}, unknown=['House', 'x'])")
    assert repr(Translations({"house": best})) == repr({"house": best})
    assert json.loads(json.dumps({word: len(best) for word, best in found.items()})) == {"house": 1}


def test_an_unknown_word_says_why_it_is_not_there() -> None:
    found = Translations({}, ["House", "x"], {"House": "house"})
    for word, message in {"House": "'House' is not in the vocabulary; 'house' is there", "x": "'x' is not in"}.items():
        with pytest.raises(KeyError, match=message):
            found[word]
    with pytest.raises(KeyError, match="never asked"):
        found["never asked"]
    assert found.get("House") is None


def test_copies_keep_what_is_unknown() -> None:
    found = Translations({"house": []}, ["House"], {"House": "house"})
    for same in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (same, same.unknown, same.hints) == (found, found.unknown, found.hints)
