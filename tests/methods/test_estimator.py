"""The manners of scikit-learn: parameters by name, clones, and what is shown of an aligner."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from qwp import QWP, InputError
from qwp.methods import METHODS, WP


def test_scikit_learn_clones_it() -> None:
    for method in METHODS:
        aligner = METHODS[method](csls_k=7, seed=3)
        copy = clone(aligner)
        assert type(copy) is type(aligner)
        assert copy is not aligner
        assert copy.get_params() == aligner.get_params()
        assert (copy.csls_k, copy.seed) == (7, 3)


def test_parameters_by_name() -> None:
    aligner = QWP().set_params(epsilon=0.2, refine=1)
    assert aligner.get_params()["epsilon"] == aligner.get_params(deep=False)["epsilon"] == 0.2
    assert aligner.refine == 1
    with pytest.raises(InputError, match="'epsylon' is not a parameter of QWP; expected one of start, train_words"):
        aligner.set_params(epsylon=1)
    with pytest.raises(TypeError):
        QWP(epsylon=1)  # type: ignore[call-arg]


def test_only_what_was_changed_is_shown() -> None:
    assert repr(QWP()) == "QWP()"
    assert (
        repr(QWP(refine=1, epsilon=0.2))
        == repr(QWP().set_params(epsilon=0.2, refine=1))
        == ("QWP(refine=1, epsilon=0.2)")
    )
    # Another default is the method's own, not a change.
    assert repr(WP(seed=2)) == "WP(seed=2)"
    assert repr(WP(coreset="kmeans++", normalize="none")) == "WP(coreset='kmeans++', normalize='none')"


def test_the_parameters_that_all_share_come_last() -> None:
    names = QWP.parameter_names()
    assert names[:2] == ["start", "train_words"]
    shared = ["normalize", "order", "dtype", "device", "backend", "threads", "max_memory", "verdict", "seed"]
    assert names[-9:] == shared
    assert len(set(names)) == len(names)
    for method in METHODS.values():
        assert method.parameter_names()[-9:] == shared


def test_an_aligner_equals_itself_alone() -> None:
    one, two = QWP(), QWP()
    assert one == one  # noqa: PLR0124
    assert one != two
    assert len({one, two, one}) == 2


def test_constructors_only_store() -> None:
    aligner = QWP(epsilon=-1.0, start="nonsense")
    assert aligner.get_params()["epsilon"] == -1.0
    with pytest.raises(InputError, match="start='nonsense' is not known"):
        aligner.validate()
