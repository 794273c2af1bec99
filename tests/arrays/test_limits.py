"""Limits of threads that several Python threads set: what is in force, and that the first number comes back."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack
from itertools import permutations

import numpy as np
import pytest

from qwp import arrays
from qwp.arrays.limits import BLAS, Library, SharedLimit
from tests.arrays.test_resources import blas_threads


class Fake:
    """A library with a number of threads, as BLAS has one."""

    def __init__(self, number: int = 8) -> None:
        self.number = number
        self.changes = 0

    def set(self, number: int) -> None:
        self.number = number
        self.changes += 1


class Inside:
    """A thread that is inside of a limit until it is told to leave."""

    def __init__(self, limit: SharedLimit, number: int) -> None:
        self._entered, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, args=(limit, number))
        self._thread.start()
        assert self._entered.wait(20)

    def _run(self, limit: SharedLimit, number: int) -> None:
        with limit.at(number):
            self._entered.set()
            self._leave.wait(20)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def library() -> Fake:
    return Fake()


@pytest.fixture
def limit(library: Fake) -> SharedLimit:
    return SharedLimit(lambda: {"one": Library(library.number, library.set)})


def test_the_innermost_limit_of_a_thread_is_in_force(library: Fake, limit: SharedLimit) -> None:
    with limit.at(2):
        with limit.at(4):
            assert library.number == 4
        assert library.number == 2
        with limit.at(2):
            assert library.number == 2
    assert library.number == 8
    assert library.changes == 4  # nothing is set to what it is


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))))
def test_threads_may_leave_in_any_order(library: Fake, limit: SharedLimit, order: tuple[int, ...]) -> None:
    inside = {number: Inside(limit, number) for number in (3, 1, 2)}
    assert library.number == 1
    for number in order:
        inside.pop(number).leave()
        assert library.number == min(inside, default=8)


def test_contexts_of_one_thread_may_be_left_in_any_order(library: Fake, limit: SharedLimit) -> None:
    outer, inner = limit.at(3), limit.at(5)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert library.number == 5
    inner.__exit__(None, None, None)
    assert library.number == 8


def test_many_threads_leave_what_was_there(library: Fake, limit: SharedLimit) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(100):
            with ExitStack() as stack:
                for number in (rng.randint(1, 6) for _ in range(rng.randint(1, 3))):
                    stack.enter_context(limit.at(number))
                    if library.number > number:
                        wrong.append(number)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert library.number == 8


def test_a_library_that_is_loaded_later_is_restored_as_well() -> None:
    libraries = {"one": Fake(8)}
    limit = SharedLimit(lambda: {name: Library(each.number, each.set) for name, each in libraries.items()})
    with limit.at(2):
        libraries["two"] = Fake(5)
        with limit.at(1):
            assert [each.number for each in libraries.values()] == [1, 1]
        assert [each.number for each in libraries.values()] == [2, 2]
    assert [each.number for each in libraries.values()] == [8, 5]


def test_numbers_of_separate_threads_do_not_mix() -> None:
    numbers: dict[int, int] = {}

    def change(number: int) -> None:
        numbers[threading.get_ident()] = number

    limit = SharedLimit(lambda: {"one": Library(numbers.get(threading.get_ident(), 8), change, separate=True)})
    inside, leave, found = threading.Event(), threading.Event(), []

    def other() -> None:
        with limit.at(1):
            inside.set()
            leave.wait(20)
            found.append(numbers[threading.get_ident()])
        found.append(numbers[threading.get_ident()])

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(20)
    with limit.at(3):
        assert numbers[threading.get_ident()] == 3
        leave.set()
        thread.join(20)
        assert numbers[threading.get_ident()] == 3
    assert numbers[threading.get_ident()] == 8
    assert found == [1, 8]


def test_an_error_inside_restores(library: Fake, limit: SharedLimit) -> None:
    with pytest.raises(ZeroDivisionError), limit.at(1):
        _ = 1 / 0
    assert library.number == 8


def test_blas_keeps_its_threads_when_several_python_threads_compute() -> None:
    before = blas_threads()
    with BLAS.at(1):  # threadpoolctl lets the thread that has changed OpenBLAS first keep it
        pass
    entered, leave = threading.Barrier(3, timeout=20), threading.Event()

    def compute(number: int) -> None:
        with arrays.use_threads(number):
            entered.wait()
            leave.wait(20)
            for _ in range(5):
                arrays.side_by_side(lambda item: np.eye(3) * item, (1, 2), np.zeros(1))
                arrays.map_blocks(lambda rows: rows.start, 4, 1, np.zeros(1))

    threads = [threading.Thread(target=compute, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    entered.wait()
    assert blas_threads() == {1}
    leave.set()
    for thread in threads:
        thread.join(30)
    assert blas_threads() == before
    with BLAS.at(1):
        assert blas_threads() == {1}
    assert blas_threads() == before
