from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.cli import commands
from qwp.cli.aliases import ALIASES, EXPLAINED, RENAMED, SWITCHES, Understood, as_truth, normalization_step, understand
from qwp.cli.parameters import FLAGS
from qwp.errors import InputError
from tests.cli.conftest import qwp


def flags_of(command: str) -> set[str]:
    return {name for param in commands.loaded(command).params for name in (*param.opts, *param.secondary_opts)}


def test_both_forms_of_an_older_flag() -> None:
    cases: list[tuple[str, str]] = [
        ("--max_vocab", "--max-vocab"),
        ("--nmax", "--max-vocab"),
        ("--maxload", "--max-vocab"),
        ("--n_refinement", "--refine"),
        ("--reg", "--epsilon"),
        ("--csls", "--csls-k"),
        ("--dico_max_rank", "--refine-words"),
        ("--bsz", "--coreset-size"),
        ("--nepoch", "--epochs"),
        ("--niter", "--steps"),
        ("--train_words", "--train-words"),
        ("--csls-k", "--csls-k"),
    ]
    for old, new in cases:
        found = understand(["align", old, "7"])
        assert found.args == ["align", new, "7"]
        assert found.notes == ([] if old == new else [f"{old} is {new} here"])
        assert understand([f"{old}=a_b=c"]).args == [f"{new}=a_b=c"]


def test_values_and_what_follows_two_dashes_stay() -> None:
    given_ = ["-k", "a_b", "my_file.vec", "--out_dir=x", "--", "--nmax", "--a_b"]
    assert understand(given_).args == ["-k", "a_b", "my_file.vec", "--out-dir=x", "--", "--nmax", "--a_b"]


def test_what_means_the_same_is_taken() -> None:
    cases: list[tuple[list[str], list[str], str | None]] = [
        (["--cuda"], ["--device", "cuda"], "--cuda is --device cuda here"),
        (["--cuda", "true"], ["--device", "cuda"], "--cuda true is --device cuda here"),
        (["--cuda", "False"], ["--device", "cpu"], "--cuda False is --device cpu here"),
        (["--cuda=0"], ["--device", "cpu"], "--cuda 0 is --device cpu here"),
        (["--cuda", "a.vec"], ["--device", "cuda", "a.vec"], "--cuda is --device cuda here"),
        (["--unsupervised"], [], "--unsupervised is the default here"),
        (["--identical"], ["--start", "identical"], "--identical is --start identical here"),
        (["--orthogonal"], ["--map", "orthogonal"], "--orthogonal is --map orthogonal here"),
        (["--precision", "fp64"], ["--dtype", "float64"], "--precision fp64 is --dtype float64 here"),
        (
            ["--normalize_embeddings", "center,renorm"],
            ["--normalize", "center,unit"],
            "--normalize_embeddings center,renorm is --normalize center,unit here",
        ),
        (
            ["--normalize", "renorm,center,renorm"],
            ["--normalize", "unit,center,unit"],
            "--normalize renorm,center,renorm is --normalize unit,center,unit here",
        ),
        (
            ["--normalize", "unit", "center", "unit", "a.vec"],
            ["--normalize", "unit,center,unit", "a.vec"],
            "--normalize unit center unit is --normalize unit,center,unit here",
        ),
        (["--normalize", "unit,center"], ["--normalize", "unit,center"], None),
        (["--normalize=none"], ["--normalize", "none"], None),
        (["--normalize", "x,y"], ["--normalize", "x,y"], None),
        (["--normalize"], ["--normalize"], None),
    ]
    for typed, meant, note in cases:
        found = understand(["align", *typed])
        assert found.args == ["align", *meant]
        assert found.notes == ([] if note is None else [note])


def test_dema_keeps_its_option_identical() -> None:
    cases: list[list[str]] = [
        ["--method", "dema", "--identical"],
        ["--method=dema", "--identical"],
        ["--identical", "--method", "qwp", "--method=dema"],
    ]
    for typed in cases:
        assert understand(["align", *typed]) == Understood(["align", *typed], [])


def test_only_the_method_decides_what_identical_means() -> None:
    cases: list[tuple[list[str], list[str]]] = [
        (["dema", "b.vec"], []),
        (["--out", "dema"], []),
        (["--method=dema", "--method=qwp"], []),
        (["--method"], []),
        ([], ["--", "--method=dema"]),
        ([], ["--", "--method", "dema"]),
    ]
    for before, after in cases:
        assert understand(["align", *before, "--identical", *after]).args == [
            *("align", *before, "--start", "identical", *after)
        ]


def test_the_scripts_that_evaluate_are_taken_too() -> None:
    typed = ["evaluate", "--src_emb", "a", "--tgt_emb", "b", "--dico_eval", "d", "--neighborhood=5"]
    assert understand(typed).args == ["evaluate", "--src", "a", "--tgt", "b", "--lexicon", "d", "--csls-k=5"]
    assert understand(["evaluate", "-d", "d"]).args == ["evaluate", "--lexicon", "d"]


def test_other_tools_get_their_own_command_lines_unchanged() -> None:
    for typed in (["muse", "unsupervised", "--max_vocab", "5"], ["vecmap", "--csls", "--cuda"]):
        assert understand(typed).args == typed


def test_what_is_different_is_explained_in_one_line() -> None:
    cases: list[tuple[str, str]] = [
        ("--dico_eval", "--dico_eval: that is `qwp evaluate --lexicon FILE`"),
        ("--dico_test", "that is `qwp evaluate --lexicon FILE`"),
        ("--src_lang", "not needed: languages are named by their files; leave it out"),
        ("--tgt_lang", "not needed"),
        ("--src_emb", "not a flag here: give both files as arguments, `qwp align SRC TGT --out DIR`"),
        ("--tgt_emb", "give both files as arguments"),
        ("--emb_dim", "not needed: the dimension is read from the files"),
        ("--exp_path", "that is `--out DIR` here"),
        ("--exp_name", "that is `--out DIR` here"),
        ("--output", "that is `--out DIR` here; `qwp export DIR --src-out FILE --tgt-out FILE` then writes"),
        ("--dico_train", "that is `--lexicon FILE` here, with a method that takes one, such as `--method procrustes`"),
        ("--init_dictionary", "that is `--lexicon FILE` here"),
        ("-d", "-d: that is `--lexicon FILE` here"),
        ("--supervised", "that is `--method procrustes --lexicon FILE` here"),
        ("--semi_supervised", "that is `--method self-learning --lexicon FILE` here"),
        ("--acl2018", "that is `--method self-learning` here"),
        ("--num_iter", "that is `--refine N` here for rounds of refinement"),
        ("--lr", "that is `--learning-rate X` here"),
        ("--lr=0.1", "--lr: that is `--learning-rate X` here"),
        ("--normalize=unitdim", "unitdim of VecMap scales columns, which has no counterpart here"),
        ("--normalize=centeremb", "centeremb of VecMap subtracts from each vector its own mean"),
    ]
    for flag, message in cases:
        ran = qwp("align", "a.vec", "b.vec", flag, "x")
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert ran.err.count("\n") == 1


def test_notes_are_shown_unless_quiet() -> None:
    ran = qwp("align", "none.vec", "none.vec", "--out", "never", "--max_vocab", "3")
    assert ran.err.startswith("note: --max_vocab is --max-vocab here\n")
    assert "none.vec does not exist" in ran.err
    assert "note:" not in qwp("align", "none.vec", "none.vec", "--out", "never", "--max_vocab", "3", "--quiet").err


def test_tables_speak_of_flags_that_are_there_and_of_others_that_are_not() -> None:
    known = {flag.flag for flag in FLAGS.values()}
    assert set(ALIASES.values()) <= known
    assert not set(ALIASES) & known
    for command in ("align", "evaluate"):
        has = flags_of(command)
        assert not set(EXPLAINED[command]) & has
        renamed = RENAMED.get(command, {})
        assert not set(renamed) & has
        assert set(renamed.values()) <= has
        switches = SWITCHES.get(command, {})
        assert set(switches) & has <= {"--identical"}  # of dema
        assert {words[0] for words in switches.values() if words} <= has
        assert not (set(renamed) | set(switches)) & set(EXPLAINED[command])


@given(st.lists(st.text() | st.sampled_from(["--", "-", "align", "--cuda", "--normalize", *ALIASES])))
def test_understanding_twice_changes_nothing_more(args: list[str]) -> None:
    try:
        once = understand(args).args
    except InputError:
        return
    assert understand(once).args == once


def test_values_of_other_tools() -> None:
    assert [as_truth(text) for text in ("true", "False", "1", "off")] == [True, False, True, False]
    with pytest.raises(ValueError, match="maybe"):
        as_truth("maybe")
    assert [normalization_step(name) for name in ("renorm", "unit", "center", "none", "x")] == [
        *("unit", "unit", "center", "none", "x")
    ]
