"""The documents are true as far as a program can tell: commands, flags, fields of JSON, install lines and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.cli import commands
from qwp.cli.compat import muse, vecmap
from qwp.methods import METHODS, QWP
from tests.cli.conftest import qwp
from tests.documents import DOCUMENTS, README, blocks, code_spans, headings, links, section
from tests.documents import commands as commands_of
from tests.test_readme import folder as folder
from tests.test_readme import quick as quick
from tests.test_readme import run_blocks, words_of
from tools.project import ROOT, pyproject
from tools.site import repository, slug

CLI = ROOT / "docs" / "cli.md"
FAQ = ROOT / "docs" / "faq.md"
# Scripts of the older tools, and folders of vectors and of their results.
NOT_FILES = {
    *("unsupervised.py", "supervised.py", "evaluate.py", "map_embeddings.py", "unsup_align.py", "align.py"),
    *("eval_translation.py", "dumped/debug/", "novels/", "mixed/", "pretrained/"),
}


def options_of(command: str) -> set[str]:
    """The flags of a command."""
    if command == "vecmap":
        return flags_of(vecmap.parser())
    if command == "muse":
        return set().union(*(flags_of(muse.parser(script)) for script in muse.SCRIPTS))
    names = (name for option in commands.loaded(command).params for name in (*option.opts, *option.secondary_opts))
    return {name for name in names if name.startswith("-")}  # the others are arguments


def flags_of(parser: Any) -> set[str]:
    return {flag for action in parser._actions for flag in action.option_strings}


def own_flags() -> set[str]:
    """All flags of the program."""
    of_the_program = {"--help", "-h", "--help-all", "--version", "--install-completion", "--show-completion"}
    return of_the_program.union(*map(options_of, commands.COMMANDS))


def accepted_flags(command: str) -> set[str]:
    """The flags of a command, and those of other tools that it accepts or explains."""
    loaded = commands.loaded(command)
    others = {*getattr(loaded, "aliases", ()), *getattr(loaded, "explained", ())}
    return options_of(command) | others | {"--help"}


def understood(command: str) -> set[str]:
    """The accepted flags, those of the command also with dashes in place of underscores."""
    return accepted_flags(command) | {flag.replace("_", "-") for flag in options_of(command)}


def parse(args: list[str]) -> None:
    """Parse a command line of qwp as it would be, and run nothing."""
    name, *rest = args
    if name == "muse":
        muse.parser(rest[0]).given(rest[1:])
    elif name == "vecmap":
        vecmap.parser().given(rest)
    else:
        commands.loaded(name).make_context(name, rest)


# --------------------------------------------------------------------------- commands and flags


def shown_commands() -> Iterator[tuple[str, list[str]]]:
    """Return where each runnable command line of the documents is, and its arguments after `qwp`."""
    for path in DOCUMENTS:
        for block in blocks(path):
            if block.language == "sh" and block.reason is None:
                for command in commands_of(block.text):
                    if command.args[0] == "qwp":
                        yield f"{path.name}: {' '.join(command.args)}", command.args[1:]


def parse_error(args: list[str]) -> str | None:
    """Return what the program says against a command line, None if it accepts it."""
    try:
        parse(args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def test_every_command_that_is_shown_can_be_parsed() -> None:
    shown = dict(shown_commands())
    assert len(shown) > 50
    wrong = {where: error for where, args in shown.items() if (error := parse_error(args))}
    assert not wrong, wrong


def test_a_command_with_a_wrong_flag_cannot() -> None:
    assert "--coresett" in str(parse_error(["align", "a.vec", "b.vec", "--out", "x", "--coresett", "lloyd"]))
    assert "--no_such_flag" in str(parse_error(["vecmap", "--unsupervised", "--no_such_flag", "a", "b", "c", "d"]))


def all_code_spans() -> Iterator[tuple[Path, str, str]]:
    """Return the document, the place for messages, and the text of everything between backticks."""
    for path in DOCUMENTS:
        for line, text in code_spans(path):
            yield path, f"{path.name}, line {line}: {text}", text


def test_commands_in_the_text_have_these_flags() -> None:
    wrong = []
    for _, where, text in all_code_spans():
        words = text.split()
        if words[0] != "qwp" or len(words) < 2 or words[1].startswith("-") or words[1] in ("COMMAND", "and"):
            continue
        flags = {word.partition("=")[0].replace("_", "-") for word in words[2:] if word.startswith("--")}
        if words[1] not in commands.COMMANDS or not flags <= understood(words[1]):
            wrong.append(where)
    assert not wrong, wrong


def test_flags_in_the_text_are_flags() -> None:
    """They are flags of this program, or of the older programs whose flags it understands."""
    known = own_flags().union(*map(accepted_flags, commands.COMMANDS))
    spelled = {flag.replace("_", "-") for flag in known}
    wrong = []
    for _, where, text in all_code_spans():
        if not text.startswith(("python ", "mypy ", "wsl ", "rsvg-convert ")):
            flags = re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", text)
            wrong += [where for flag in flags if flag not in known and flag.replace("_", "-") not in spelled]
    assert not wrong, wrong


def test_the_options_of_every_command_are_documented() -> None:
    """Commands that align pairs have those of all methods, of which docs/parameters.md is made."""
    wrong = []
    for command in commands.COMMANDS:
        if command in ("align", "align-all", "align-many", *commands.OTHER_TOOLS):
            continue
        title = next(title for title in headings(CLI) if title.startswith(f"qwp {command}"))
        text = "\n".join([title, *section(CLI, title)])
        options = options_of(command) - {"-o", "-l", "-q"}
        wrong += [f"{option} of qwp {command}" for option in options if not re.search(rf"[` ]{option}\b", text)]
    assert not wrong, wrong


def test_every_command_has_a_section() -> None:
    titles = " ".join(headings(CLI))
    for command in commands.COMMANDS:
        assert f"qwp {command}" in titles


def test_every_initializer_is_explained() -> None:
    """The table of docs/parameters.md has exactly the choices of `start`."""
    text = (ROOT / "docs" / "parameters.md").read_text("utf-8").partition("| `start` | what it does")[2]
    table = text.partition("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE)) == set(
        QWP.parameters()["start"].declared.choices or ()
    )


def test_methods_and_files_that_are_named_exist() -> None:
    wrong = []
    for _, where, text in all_code_spans():
        wrong += [where for name in re.findall(r"--method ([a-z][\w-]*)", text) if name not in METHODS]
        if re.fullmatch(r"[a-z_][a-z0-9_/]*(\.py|/)", text) and text not in NOT_FILES:
            wrong += [where] if not any((folder / text).exists() for folder in (ROOT, ROOT / "src" / "qwp")) else []
    assert not wrong, wrong


# --------------------------------------------------------------------------- JSON


# Whose names are data: words, stages, parameters, ways of retrieval.
_DATA = (
    "translations",
    "scale",
    "seconds",
    "config",
    "scores",
    "conventions",
    "reading",
    "normalization",
    "evaluations",
    "left_out",
)
_VECTORS, _GOLD = ("en.vec", "es.vec"), ("--lexicon", "en-es.txt")
_OUTS = ("--src-out", "out.src.vec", "--tgt-out", "out.tgt.vec")
_LANGUAGES = ("--src_lang", "en", "--src_emb", "en.vec", "--tgt_lang", "es", "--tgt_emb", "es.vec")
# In an order in which each finds what it needs.
_LINES = (
    ("align", *_VECTORS, "--out", "en-es", "--profile", *_OUTS),
    ("align-all", "es.vec", "en.vec", "fr.vec", "--out", "all"),
    ("methods", "qwp"),
    ("evaluate", "en-es", *_GOLD),
    ("report", "en-es", *_GOLD),
    ("translate", "en-es", "house"),
    ("lexicon", "en-es"),
    ("export", "en-es", *_OUTS),
    ("info", "en-es"),
    ("info", "en.vec"),
    ("convert", "en.vec", "en.npz"),
    ("data", "list"),
    ("vecmap", "--supervised", "en-es.txt", *_VECTORS, "a.emb", "b.emb"),
    ("muse", "supervised", *_LANGUAGES, "--dico_train", "en-es.txt", "--dico_eval", "en-es.txt"),
    ("demo",),
)


def fields_of(about: dict[str, Any]) -> set[str]:
    """The names in an object and in the objects in it, those aside whose names are data."""
    found = set(about)
    for name, value in about.items():
        parts = value if isinstance(value, list) else [value]
        if name not in _DATA:
            found |= {field for part in parts if isinstance(part, dict) for field in fields_of(part)}
    return found


def documented(command: str) -> str:
    """Where the fields of a command are said: those of an alignment and of scores are explained once."""
    titles = [title for title in headings(CLI) if re.search(rf"qwp {command}\b", title)]
    shared = [title for title in headings(CLI) if title.startswith(("JSON", "qwp align", "qwp evaluate"))]
    wanted = titles if command in ("convert", "data", "export", "lexicon", "methods", "translate") else titles + shared
    of_all = "\n".join(section(CLI, "JSON")).partition("\n### ")[0]
    return "\n".join([of_all, *(line for title in wanted for line in section(CLI, title))])


@pytest.mark.slow
def test_the_fields_of_json_are_documented(folder: Path, quick: None) -> None:
    for command, *args in _LINES:
        ran = qwp(command, *args, "--json")
        assert ran.code == 0, ran.err
        text = documented(command)
        missing = [name for name in sorted(fields_of(ran.json)) if f"`{name}`" not in text]
        assert not missing, f"{', '.join(missing)} of `qwp {command}` not documented"


def test_the_error_object_is_as_shown() -> None:
    ran = qwp("info", "x.vec", "--json")
    assert ran.json["error"]["kind"] == "bad input"
    assert ran.json["error"]["message"].startswith("x.vec does not exist; ")
    assert set(ran.json) == {"command", "error"}


# --------------------------------------------------------------------------- Python


@pytest.mark.slow
def test_every_block_of_the_questions_runs(folder: Path, quick: None) -> None:
    assert qwp("align", "en.vec", "es.vec", "--out", "en-es", "--quiet").code == 0
    assert qwp("align-all", "es.vec", "en.vec", "fr.vec", "--out", "all", "--quiet").code == 0
    assert run_blocks(FAQ)["pair"].translate("casa")["casa"][0].word == "maison"


@pytest.mark.slow
def test_every_block_of_the_tutorial_runs(folder: Path, quick: None) -> None:
    for name in ("en.vec", "es.vec", "en-es.txt"):
        (folder / name).unlink()
    names = run_blocks(ROOT / "docs" / "tutorial.md")
    assert names["alignment"].translate("house")["house"][0].word == "casa"
    assert (folder / "en-es.html").is_file()
    assert (folder / "es.aligned.vec").is_file()


@pytest.mark.slow
def test_every_block_for_those_who_come_from_elsewhere_runs(folder: Path, quick: None) -> None:
    gensim = pytest.importorskip("gensim", reason="gensim is not installed")
    for language in ("en", "es"):
        vectors = gensim.models.KeyedVectors.load_word2vec_format(f"{language}.vec")
        vectors.save(f"{language}.kv")
        rows = [line.split() for line in Path(f"{language}.vec").read_text().splitlines()[1:]]
        header = ["word", *(f"x{i}" for i in range(len(rows[0]) - 1))]
        Path(f"{language}.csv").write_text("".join(",".join(row) + "\n" for row in (header, *rows)))
    sentences = [[word, other] for word, other in zip(words_of("es"), words_of("es")[1:], strict=False)] * 3
    gensim.models.Word2Vec(sentences, vector_size=12, min_count=1, epochs=1).save("es.model")
    names = run_blocks(ROOT / "docs" / "coming-from.md")
    assert "keyed" not in names or names["keyed"].most_similar("house")
    assert (folder / "vectors-es.txt").is_file()


@pytest.mark.slow
def test_every_block_about_figures_runs(folder: Path, quick: None) -> None:
    assert qwp("align", "en.vec", "es.vec", "--out", "en-es", "--quiet").code == 0
    assert run_blocks(ROOT / "docs" / "figures.md")["points"].shape == (6, 2)
    named = set(re.findall(r"^\| `([a-z-]+\.svg)`", (ROOT / "docs" / "figures.md").read_text("utf-8"), re.MULTILINE))
    assert named <= {path.name for path in (folder / "figures").iterdir()}


@pytest.mark.slow
def test_every_block_about_word_change_runs(folder: Path) -> None:
    pytest.importorskip("gensim", reason="gensim is not installed")
    rng = np.random.default_rng(0)
    for name in ("old", "new"):
        sentences = (" ".join(rng.choice(words_of("en"), 10)) for _ in range(400))
        (folder / f"{name}.txt").write_text("\n".join(sentences))
    run_blocks(ROOT / "docs" / "word-change.md")
    assert (folder / "shift.tsv").is_file()


@pytest.mark.slow
def test_every_step_when_no_alignment_is_found_runs(folder: Path, quick: None) -> None:
    run_blocks(ROOT / "docs" / "no-alignment.md")
    assert all((folder / name / "alignment.json").is_file() for name in ("longer", "over-fr", "pairs", "spelling"))


@pytest.mark.slow
def test_every_block_about_several_languages_runs(folder: Path, quick: None) -> None:
    (folder / "de.vec").write_bytes((folder / "fr.vec").read_bytes())
    names = run_blocks(ROOT / "docs" / "languages.md")
    assert names["found"].names == ("en", "es", "fr")
    assert (folder / "languages.html").is_file()
    assert {path.name for path in (folder / "joint").iterdir()} == {"en.vec", "es.vec", "fr.vec"}


# --------------------------------------------------------------------------- installing


def test_extras_that_are_named_exist() -> None:
    extras = set(pyproject()["project"]["optional-dependencies"])
    named = set()
    for path in (*DOCUMENTS, *(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        if path != Path(__file__) and path.name != "test_readme.py":
            named |= set(re.findall(r"(?:qwp|\.)\[([a-z]+)\]\"", path.read_text("utf-8")))
    assert {"torch", "faiss", "pot"} <= named <= extras


def test_extras_of_messages_exist() -> None:
    from qwp.errors import _EXTRAS

    assert set(_EXTRAS) <= set(pyproject()["project"]["optional-dependencies"])


def test_every_install_line_works_today() -> None:
    """`pip install .` in a checkout, with an extra in quotes. No index has qwp, so `pip install qwp` would fail."""
    for _, where, text in all_code_spans():
        if text.startswith("pip install"):
            assert re.fullmatch(r'pip install (\.|"\.\[[a-z,]+\]"|gensim)', text), where


# --------------------------------------------------------------------------- length

MOST_WORDS = 30_000


def test_the_documents_are_short() -> None:
    """Numbers and words count, the bars of tables do not. docs/research keeps the full record."""
    pages = (path for path in DOCUMENTS if path.parent == ROOT / "docs")
    words = [word for path in pages for word in path.read_text("utf-8").split() if re.search(r"\w", word)]
    assert len(words) <= MOST_WORDS


def test_the_recall_of_the_readme_is_that_of_the_guide() -> None:
    guide = [cells_of(line) for line in (ROOT / "docs" / "migrate.md").read_text("utf-8").splitlines()]
    rows = [cells_of(line) for line in section(README, "Two encoders") if line.startswith("| ")]
    assert len(rows) == 4
    for row in rows[1:]:
        assert any(set(row) <= set(each) for each in guide), row


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_contributors_learn_what_a_method_needs() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Adding a method")[2]
    for place in ("`METHODS`", "`CASES`", "`SYSTEMS`"):
        assert place in text, place


# --------------------------------------------------------------------------- links


def targets(path: Path) -> Iterator[tuple[str, Path, str]]:
    """The links of a document into the checkout: as written, the file and the heading."""
    for link in links(path):
        address, _, anchor = link.partition("#")
        if address.startswith(repository()):
            yield link, ROOT / address.removeprefix(repository()), anchor
        elif not address.startswith("https://"):
            yield link, path.parent / address if address else path, anchor


def test_links_lead_to_files_and_headings() -> None:
    wrong, anchors = [], cache(lambda file: {slug(title) for title in headings(file)})
    for path in DOCUMENTS:
        for link, file, anchor in targets(path):
            if not file.exists() or (anchor and anchor not in anchors(file.resolve())):
                wrong.append(f"{path.name}: {link}")
    assert not wrong, wrong


def test_links_of_the_readme_work_on_a_package_index() -> None:
    """It is the long description there, where no other file of the checkout is."""
    for link in links(README):
        assert link.startswith("https://"), link
    assert len(list(targets(README))) > 20
