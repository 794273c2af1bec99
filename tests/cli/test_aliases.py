from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.cli.aliases import ALIASES, rewrite
from qwp.cli.parameters import FLAGS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--max_vocab", "--max-vocab"),
        ("--nmax", "--max-vocab"),
        ("--n_refinement", "--refine"),
        ("--reg", "--epsilon"),
        ("--csls", "--csls-k"),
        ("--dico_max_rank", "--refine-words"),
        ("--bsz", "--coreset-size"),
        ("--nepoch", "--epochs"),
        ("--niter", "--steps"),
        ("--train_words", "--train-words"),
        ("--csls-k", "--csls-k"),
    ],
)
def test_both_forms_of_an_older_flag(old: str, new: str) -> None:
    assert rewrite(["align", old, "7"]) == ["align", new, "7"]
    assert rewrite([f"{old}=a_b=c"]) == [f"{new}=a_b=c"]


def test_values_and_what_follows_two_dashes_stay() -> None:
    given_ = ["-k", "a_b", "my_file.vec", "--out_dir=x", "--", "--nmax", "--a_b"]
    assert rewrite(given_) == ["-k", "a_b", "my_file.vec", "--out-dir=x", "--", "--nmax", "--a_b"]


def test_an_alias_is_the_flag_of_a_parameter() -> None:
    known = {flag.flag for flag in FLAGS.values()}
    assert set(ALIASES.values()) <= known
    assert not set(ALIASES) & known


@given(st.lists(st.text() | st.sampled_from(["--", "-", *ALIASES])))
def test_rewriting_twice_changes_nothing_more(args: list[str]) -> None:
    once = rewrite(args)
    assert rewrite(once) == once
    assert len(once) == len(args)
    assert [a for a in once if not a.startswith("--")] == [a for a in args if not a.startswith("--")]
