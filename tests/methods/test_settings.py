"""Supervision: which methods need it, and which inputs are refused."""

from __future__ import annotations

import numpy as np
import pytest

from qwp import InputError, Lexicon
from qwp.methods import METHODS, make_aligner
from qwp.methods.settings import IDENTICAL, NONE, OPTIONAL, REQUIRED, Supervision
from tests.conftest import planted_embeddings
from tests.libraries import skip_without_library
from tests.methods.cases import seeds

SUPERVISED = sorted(name for name, aligner in METHODS.items() if aligner.supervision == REQUIRED)


UNSUPERVISED = sorted(name for name, aligner in METHODS.items() if aligner.supervision in (NONE, IDENTICAL))


def test_a_fingerprint_tells_one_supervision_from_another() -> None:
    empty, lexicon, longer = Supervision(), Supervision(seeds(3)), Supervision(seeds(4))
    matrix = Supervision(start_matrix=np.eye(3))
    assert empty.fingerprint() == {"lexicon": None, "start_matrix": None}
    prints = [tuple(each.fingerprint().values()) for each in (empty, lexicon, longer, matrix)]
    assert len(set(prints)) == 4
    # The fingerprint depends on the content, not on the object or the precision of a matrix.
    assert Supervision(seeds(3)).fingerprint() == lexicon.fingerprint()
    assert Supervision(start_matrix=np.eye(3, dtype=np.float32)).fingerprint() == matrix.fingerprint()
    turned = Supervision(start_matrix=np.eye(3)[[1, 0, 2]])
    assert turned.fingerprint() != matrix.fingerprint()


@pytest.mark.parametrize("wanted", [NONE, OPTIONAL, REQUIRED, IDENTICAL])
def test_methods_that_take_a_lexicon(wanted: str) -> None:
    allowed = {NONE: (False,), OPTIONAL: (False, True), REQUIRED: (True,), IDENTICAL: (False,)}[wanted]
    for given in (False, True):
        supervision = Supervision(seeds(2) if given else None)
        if given in allowed:
            supervision.check("some", wanted, takes_matrix=False)
        else:
            with pytest.raises(InputError, match="method 'some'"):
                supervision.check("some", wanted, takes_matrix=False)


def test_methods_that_take_a_matrix() -> None:
    supervision = Supervision(start_matrix=np.eye(2))
    supervision.check("some", NONE, takes_matrix=True)
    with pytest.raises(InputError, match="start_matrix was given, but method 'some' does not use one"):
        supervision.check("some", NONE, takes_matrix=False)


@pytest.mark.parametrize("start", ["profiles", "lexicon", "matrix"])
def test_an_initializer_takes_the_supervision_of_its_name(start: str) -> None:
    supervisions = {
        "profiles": Supervision(),
        "lexicon": Supervision(seeds(2)),
        "matrix": Supervision(start_matrix=np.eye(2)),
    }
    aligner = make_aligner("qwp", start=start)
    aligner.validate(supervisions.pop(start))
    for given, supervision in supervisions.items():
        with pytest.raises(InputError, match="none was given" if given == "profiles" else "needs|does not use it"):
            aligner.validate(supervision)


def test_there_are_methods_of_both_kinds() -> None:
    assert SUPERVISED == ["least-squares", "proc-b", "procrustes", "rcsls"]
    assert {"gromov", "identical"} <= set(UNSUPERVISED)


def test_a_missing_lexicon_is_explained() -> None:
    for method in SUPERVISED:
        expected = (
            rf"method '{method}' is supervised and needs a seed lexicon, none was given: add --lexicon FILE \(in Python"
        )
        with pytest.raises(InputError, match=expected):
            make_aligner(method, threads=1).fit(*planted_embeddings(50))


def test_a_lexicon_of_other_words_is_explained() -> None:
    for method in SUPERVISED:
        lexicon = Lexicon((("nobody", "nowhere"), ("s1", "nowhere")))
        with pytest.raises(InputError, match="seed lexicon of 2 pairs: no pair is covered"):
            make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=lexicon)


@pytest.mark.parametrize("method", UNSUPERVISED)
def test_a_lexicon_for_a_method_without_one_is_refused(method: str) -> None:
    skip_without_library(method)
    with pytest.raises(InputError, match=f"a lexicon was given, but method '{method}' does not use one: leave it out"):
        make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=seeds(5))


def test_a_lexicon_that_the_initializer_does_not_use_is_refused() -> None:
    cases: list[str] = ["qwp", "wp", "self-learning"]
    for method in cases:
        with pytest.raises(InputError, match=r"lexicon was given,? but start="):
            make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=seeds(5))


@pytest.mark.parametrize("method", [*SUPERVISED, "identical", "gromov", "self-learning"])
def test_a_start_matrix_for_a_method_without_one_is_refused(method: str) -> None:
    skip_without_library(method)
    lexicon = seeds(20) if method in SUPERVISED else None
    with pytest.raises(InputError, match=f"start_matrix was given, but method '{method}' does not use one"):
        make_aligner(method, threads=1).fit(*planted_embeddings(50), lexicon=lexicon, start_matrix=np.eye(12))
