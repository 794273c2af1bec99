from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.spaces.io.reading import Batch, Reading, collect, drop_duplicates, explain_damage, rebatch


def batches(words: list[list[str]]) -> Iterator[Batch]:
    """Yield batches of the given words; the vector of each row is its position."""
    place = 0
    for some in words:
        yield Batch(some, np.arange(place, place + len(some), dtype=np.float32).reshape(-1, 1))
        place += len(some)


def reading() -> Reading:
    return Reading(Path("x.vec"), "text", np.dtype("float32"))


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=8).filter(any))
def test_the_first_row_of_each_word_is_kept(words: list[list[str]]) -> None:
    state = reading()
    found = collect(drop_duplicates(batches(words), state), state)
    flat = [word for some in words for word in some]
    expected = {word: flat.index(word) for word in flat}
    assert found.words == list(expected)
    assert found.vectors.ravel().tolist() == list(expected.values())
    assert found.report is not None
    assert found.report.duplicates == len(flat) - len(expected)


@given(st.lists(st.lists(st.text(max_size=2), max_size=9), max_size=6), st.integers(1, 7))
def test_rebatch_keeps_rows_and_order(words: list[list[str]], size: int) -> None:
    found = list(rebatch(batches(words), size))
    flat = [word for some in words for word in some]
    assert [word for batch in found for word in batch.words] == flat
    assert [row for batch in found for row in batch.vectors.ravel().tolist()] == list(range(len(flat)))
    assert all(len(batch) == size for batch in found[:-1])
    assert all(0 < len(batch) <= size for batch in found)


@pytest.mark.parametrize("guess", [None, 1, 3, 1000])
def test_wrong_estimates_of_the_number_of_rows_do_no_harm(guess: int | None) -> None:
    state = reading()
    state.expected_rows = guess
    words = [[f"{i}-{j}" for j in range(7)] for i in range(30)]
    found = collect(drop_duplicates(batches(words), state), state)
    assert found.vectors.ravel().tolist() == list(range(210))


def test_no_rows_at_all() -> None:
    state = reading()
    with pytest.raises(InputError, match="no usable word vector"):
        collect(drop_duplicates(batches([[]]), state), state)


def test_exceptions_of_libraries_become_input_errors() -> None:
    with (
        pytest.raises(
            InputError, match=r"x is a damaged or truncated thing \(builtins.KeyError\), expected a complete one"
        ),
        explain_damage(Path("x"), "thing"),
    ):
        raise KeyError("hidden")
    with pytest.raises(InputError, match=r"^mine$"), explain_damage(Path("x"), "thing"):
        raise InputError("mine")
