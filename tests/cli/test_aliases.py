"""Options of MUSE, VecMap and fastText, given to commands of qwp."""

from __future__ import annotations

from typing import Any

import pytest

from qwp.cli.aliases import (
    ALIASES,
    ALIGN_ALIASES,
    EVALUATE_ALIASES,
    EXPLAINED_BY_ALIGN,
    EXPLAINED_BY_EVALUATE,
    boolean,
    normalization_step,
    translate,
)
from qwp.cli.commands import loaded
from qwp.cli.parameters import FLAGS, resolve
from qwp.errors import InputError
from tests.cli.conftest import qwp


def parsed(command: str, *args: str) -> dict[str, Any]:
    """Return the options that a command was given, by name."""
    ctx = loaded(command).make_context(command, list(args))
    return {
        name: value
        for name, value in ctx.params.items()
        # Older versions of click count missing arguments as given.
        if ctx.get_parameter_source(name).name == "COMMANDLINE" and value != ()
    }


def align_options(*args: str) -> dict[str, Any]:
    given = parsed("align", "a.vec", "b.vec", *args)
    assert (str(given.pop("src")), str(given.pop("tgt"))) == ("a.vec", "b.vec")
    return given


def note(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.strip()


def test_another_name_takes_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        ("--nmax", "--max-vocab"),
        ("--maxload", "--max-vocab"),
        ("--n_refinement", "--refine"),
        ("--reg", "--epsilon"),
        ("--csls", "--csls-k"),
        ("--dico_max_rank", "--refine-words"),
        ("--bsz", "--coreset-size"),
        ("--nepoch", "--epochs"),
        ("--niter", "--steps"),
    ]
    for old, new in cases:
        meant = {new[2:].replace("-", "_"): 7}
        assert align_options(old, "7") == align_options(f"{old}=7") == align_options(new, "7") == meant
        assert note(capsys).startswith(f"note: {old.replace('_', '-')} is {new} here\n")


def test_underscores_are_hyphens(capsys: pytest.CaptureFixture[str]) -> None:
    assert align_options("--train_words", "7", "--no-sphere_centroids") == {"train_words": 7, "sphere_centroids": False}
    assert note(capsys) == ""


def test_values_and_what_follows_two_dashes_stay() -> None:
    given = parsed("translate", "dir", "-k", "3", "a_b", "--", "--nmax", "--a_b")
    assert [*given["words"]] == ["a_b", "--nmax", "--a_b"]
    assert str(parsed("convert", "a_b.vec", "--max_vocab=5", "c_d.vec")["source"]) == "a_b.vec"


def test_an_option_that_means_the_same_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    cases: list[tuple[list[str], dict[str, Any], str]] = [
        (["--cuda"], {"device": "cuda"}, "--cuda is --device cuda here"),
        (["--cuda", "true"], {"device": "cuda"}, "--cuda true is --device cuda here"),
        (["--cuda", "False"], {"device": "cpu"}, "--cuda False is --device cpu here"),
        (["--cuda=0"], {"device": "cpu"}, "--cuda 0 is --device cpu here"),
        (["--unsupervised"], {}, "--unsupervised is the default here"),
        (["--init-identical"], {"start": "identical"}, "--init-identical is --start identical here"),
        (["--orthogonal"], {"map": "orthogonal"}, "--orthogonal is --map orthogonal here"),
        (["--precision", "fp64"], {"dtype": "float64"}, "--precision fp64 is --dtype float64 here"),
        (
            ["--normalize_embeddings", "center,renorm"],
            {"normalize": "center,unit"},
            "--normalize-embeddings center,renorm is --normalize center,unit here",
        ),
        (
            ["--normalize", "unit", "center", "unit"],
            {"normalize": "unit,center,unit"},
            "--normalize unit center unit is --normalize unit,center,unit here",
        ),
        (["--normalize", "unit,center"], {"normalize": "unit,center"}, ""),
        (["--normalize=none"], {"normalize": "none"}, ""),
        (["--normalize", "x,y"], {"normalize": "x,y"}, ""),
    ]
    for typed, meant, text in cases:
        assert align_options(*typed) == meant
        assert note(capsys) == (f"note: {text}" if text else "")


def test_the_last_of_two_names_wins() -> None:
    assert align_options("--nmax", "5", "--max-vocab", "7") == {"max_vocab": 7}
    assert align_options("--max-vocab", "7", "--nmax", "5") == {"max_vocab": 5}
    assert align_options("--cuda", "--device", "cpu") == {"device": "cpu"}


def test_a_switch_leaves_the_next_argument_alone() -> None:
    given = parsed("align", "--cuda", "a.vec", "--orthogonal", "b.vec", "--normalize", "unit", "c.vec")
    assert (str(given["src"]), str(given["tgt"]), [str(path) for path in given["more"]]) == (
        "a.vec",
        "b.vec",
        ["c.vec"],
    )


def test_a_missing_value_is_reported() -> None:
    for option in ("--nmax", "--normalize", "--precision"):
        ran = qwp("align", "a.vec", "b.vec", option)
        assert ran.code == 2
        assert f"'{option}' requires an argument" in ran.err


@pytest.mark.parametrize("before", [["--method", "dema"], ["--method=dema"], ["--method", "qwp", "--method=dema"]])
def test_dema_keeps_its_option_identical(before: list[str]) -> None:
    assert resolve(align_options(*before, "--identical"), None) == {"method": "dema", "identical": True}
    assert resolve(align_options("--identical", *before), None) == {"method": "dema", "identical": True}


def test_only_the_method_decides_what_identical_means() -> None:
    assert resolve(align_options("--identical"), None) == {"start": "identical"}
    assert resolve(parsed("align", "dema", "b.vec", "--identical", "--out", "dema"), None) == {"start": "identical"}
    assert resolve(align_options("--method=dema", "--method=qwp", "--identical"), None)["start"] == "identical"


def test_the_scripts_that_evaluate_are_accepted() -> None:
    given = parsed("evaluate", "--src_emb", "a", "--tgt_emb", "b", "--dico_eval", "d", "-d", "e", "--neighborhood=5")
    assert {name: str(given[name]) for name in ("src", "tgt", "csls_k")} == {"src": "a", "tgt": "b", "csls_k": "5"}
    assert [str(path) for path in given["lexicon"]] == ["d", "e"]


def test_other_tools_parse_their_own_command_lines() -> None:
    for command, typed in (("muse", ["unsupervised", "--max_vocab", "5"]), ("vecmap", ["--csls", "--cuda"])):
        assert loaded(command).make_context(command, list(typed)).args == typed


def test_an_option_of_another_tool_is_explained_in_one_line() -> None:
    cases = [
        ("--dico_eval", "--dico-eval: use `qwp evaluate --lexicon FILE`"),
        ("--src_lang", "not needed, because the files name the languages: leave it out"),
        ("--src_emb", "--src-emb: give both files as arguments, `qwp align SRC TGT --out DIR`"),
        ("--output", "use `--out DIR`; `qwp export DIR --src-out FILE --tgt-out FILE` then writes"),
        ("-d", "-d: use `--lexicon FILE`, with a method that takes one, such as `--method procrustes`"),
        ("--semi_supervised", "use `--method self-learning --lexicon FILE`"),
        ("--num_iter", "use `--refine N` for rounds of refinement"),
        ("--lr=0.1", "--lr: use `--learning-rate X`"),
        ("--normalize=unitdim", "unitdim of VecMap scales columns, which has no counterpart here"),
        ("--normalize=centeremb", "centeremb of VecMap subtracts from each vector its own mean"),
    ]
    for flag, message in cases:
        ran = qwp("align", "a.vec", "b.vec", flag, "x")
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert ran.err.count("\n") == 1


def test_notes_are_shown_unless_quiet() -> None:
    ran = qwp("align", "none.vec", "none.vec", "--out", "never", "--nmax", "3")
    assert ran.err.startswith("note: --nmax is --max-vocab here\n")
    assert "none.vec does not exist" in ran.err
    assert "note:" not in qwp("align", "none.vec", "none.vec", "--out", "never", "--nmax", "3", "--quiet").err


def test_aliases_name_options_that_exist_and_hide_none() -> None:
    assert {alias.option for alias in ALIASES.values()} <= {flag.flag for flag in FLAGS.values()}
    for command, aliases, explained in (
        ("align", ALIGN_ALIASES, EXPLAINED_BY_ALIGN),
        ("evaluate", EVALUATE_ALIASES, EXPLAINED_BY_EVALUATE),
    ):
        options = {name for param in loaded(command).params for name in (*param.opts, *param.secondary_opts)}
        own = set(aliases) - set(ALIASES)
        assert {aliases[name].option for name in own} - {""} <= options
        assert set(aliases) & options <= {"--normalize"}  # which VecMap gives blanks
        assert not set(explained) & (options | set(aliases))


def test_values_of_other_tools() -> None:
    assert [boolean(text) for text in ("true", "False", "1", "off")] == [True, False, True, False]
    with pytest.raises(ValueError, match="maybe"):
        boolean("maybe")
    assert [normalization_step(name) for name in ("renorm", "unit", "center", "none", "x")] == [
        *("unit", "unit", "center", "none", "x")
    ]
    with pytest.raises(InputError, match="the step unitdim of normalize is not known"):
        normalization_step("unitdim")


def test_values_of_other_options_are_not_translated() -> None:
    args = ["--out", "--nmax", "--nmax=5", "x", "-k", "--cuda", "-k3", "--cuda", "0", "--", "--cuda"]
    translated, notes = translate(args, ALIGN_ALIASES, {"--out": 1, "-k": 1})
    kept = ["--out", "--nmax", "--max-vocab", "5", "x", "-k", "--cuda", "-k3", "--device", "cpu", "--", "--cuda"]
    assert translated == kept
    assert notes == ["--nmax is --max-vocab here", "--cuda 0 is --device cpu here"]
