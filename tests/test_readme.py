"""The blocks of the README and of docs/tasks.md run on small files, in the order in which a reader meets them."""

from __future__ import annotations

import ast
import gzip
import importlib.util
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, Lexicon
from qwp.cli import demo as demo_command
from qwp.methods import METHODS
from qwp.spaces import demo, io
from tests.cli.conftest import Ran
from tests.cli.conftest import qwp as run_qwp
from tests.conftest import QUICK
from tests.documents import README, Block, Command, blocks, commands
from tests.migration.problems import encoders
from tests.problems import rotation, space
from tools.project import ROOT, pyproject

TASKS = ROOT / "docs" / "tasks.md"
MOST_LINES = 150

# Blocks of docs/tasks.md that are not run, and the reasons that the page gives. The README has none.
NOT_RUN = {
    "qwp --install-completion": "it changes the start-up file of the shell",
    "qwp align-many pairs.tsv --out aligned": "needs a list",
    "qwp data download en es en-es\nqwp align en es --out en-es": "it fetches a gigabyte",
    "qwp explore en-es --lexicon en-es.txt\nqwp explore en-es en-es-learned": "it serves a page until it is stopped",
}
# Row by row the same words; the rest of each vocabulary is numbers, which all languages spell alike, and made-up words.
KNOWN = {
    "en": ("house", "water", "boat", "mother", "night"),
    "es": ("casa", "agua", "barco", "madre", "noche"),
    "fr": ("maison", "eau", "bateau", "mere", "nuit"),
    "de": ("haus", "wasser", "boot", "mutter", "nacht"),
}
N_WORDS, DIM, NOISE = 300, 12, 0.1
OUTPUTS = ("--out", "-o", "--src-out", "--tgt-out")


# --------------------------------------------------------------------------- the folder of the reader


def words_of(language: str) -> list[str]:
    """The vocabulary of a language: row by row the same things."""
    known = KNOWN[language]
    made_up = (str(1000 + i) if i % 4 == 0 else f"{language}{i}" for i in range(len(known), N_WORDS))
    return [*known, *made_up]


def vectors_of(language: str) -> np.ndarray:
    """The same space for all languages, turned and disturbed for each, (n, d)."""
    number = list(KNOWN).index(language)
    rows = space(N_WORDS, DIM, seed=0) @ rotation(DIM, seed=number)
    noise = np.random.default_rng(number).standard_normal(rows.shape)
    return np.asarray(rows + NOISE / DIM**0.5 * noise, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the README speaks of, in the folder in which commands are run."""
    for language in KNOWN:
        spaces = Embeddings(words_of(language), vectors_of(language))
        io.save(spaces, tmp_path / f"{language}.vec")
        (tmp_path / f"{language}.emb").write_bytes((tmp_path / f"{language}.vec").read_bytes())
        (tmp_path / f"{language}-words.txt").write_text("".join(f"{word}\n" for word in words_of(language)[:250]))
    (tmp_path / "en.vec.gz").write_bytes(gzip.compress((tmp_path / "en.vec").read_bytes()))
    pairs = [f"{en} {es}\n" for en, es in zip(words_of("en"), words_of("es"), strict=True)]
    (tmp_path / "en-es.txt").write_text("".join(pairs))
    (tmp_path / "pairs.txt").write_text("".join(pairs[:100]))
    for year in (1890, 1990):
        noisy = vectors_of("en") + 0.01 * np.random.default_rng(year).standard_normal((N_WORDS, DIM))
        io.save(Embeddings(words_of("en"), noisy), tmp_path / f"en.{year}.vec")
    texts = encoders(500)
    io.save(Embeddings(texts.ids, texts.old), tmp_path / "old.npz")
    io.save(Embeddings(texts.ids[:300], texts.new[:300]), tmp_path / "new.npz")
    (tmp_path / "words.txt").write_text("house\nwater\n")
    (tmp_path / "en.txt").write_text("the house by the water\n" * 50)
    (tmp_path / "wordsim353.tsv").write_text("Word 1\tWord 2\tHuman\nhouse\tboat\t3\nhouse\tnight\t2\nwater\tboat\t7\n")
    (tmp_path / "semeval.tsv").write_text("house\tcasa\t4\nhouse\tagua\t1\nwater\tagua\t3.9\n")
    (tmp_path / "questions-words.txt").write_text(": all\nHouse water boat mother\nhouse boat water night\n")
    (tmp_path / "europarl.en").write_text("house water\nboat mother\nnight\n")
    (tmp_path / "europarl.es").write_text("casa agua\nbarco madre\nnoche\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def quick(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults of the methods that solve small problems in little time, and a demo that is one; what is shown stays."""
    for method in METHODS.values():
        defaults = method.__init__.__kwdefaults__ or {}
        # A quarter of the words are spelled alike in all languages.
        quick = {**QUICK, "start": "identical"} if defaults.get("start") == "auto" else QUICK
        for name in quick.keys() & defaults.keys():
            monkeypatch.setitem(defaults, name, quick[name])
    shown = io.load(folder / "en.vec"), io.load(folder / "es.vec"), Lexicon.load(folder / "en-es.txt")
    for module in (demo, demo_command):
        monkeypatch.setattr(module, "load_demo", lambda: shown)


# --------------------------------------------------------------------------- running


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def on_this_machine(text: str) -> str:
    """The same on the processor, where there is no GPU."""
    if has_gpu():
        return text
    return text.replace("--device cuda", "--device cpu").replace('device="cuda"', 'device="cpu"')


def is_missing(module: str) -> bool:
    return importlib.util.find_spec(module) is None


def run_qwp_line(command: Command) -> None:
    """Run it, and look for the files that it was to write."""
    args = command.args[1:]
    if "--approximate" in args and is_missing("faiss"):
        return
    outs = [Path(value) for option, value in pairwise(args) if option in OUTPUTS]
    is_there = args[0] == "align" and any(path.is_dir() for path in outs)
    ran = run_qwp(*args, stdin=None if command.stdin is None else Path(command.stdin).read_text("utf-8"))
    assert ran.code == 0, ran.err
    if command.stdout is not None:
        Path(command.stdout).write_text(ran.out, "utf-8")
    for path in outs:
        assert path.exists(), f"{path} was not written: {ran.err}"
    assert ("nothing was computed" in ran.out) == is_there
    if tuple(args) in REMARKS:
        REMARKS[tuple(args)](ran)


def first_translations(out: str) -> dict[str, str]:
    """Word and best translation in the TSV of `qwp translate`."""
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0] == ["word", "rank", "translation", "score"]
    return {word: translation for word, rank, translation, _ in rows[1:] if rank == "1"}


def said(*parts: str) -> Callable[[Ran], None]:
    def check(ran: Ran) -> None:
        for part in parts:
            assert part in ran.out + ran.err

    return check


def translated(expected: dict[str, str]) -> Callable[[Ran], None]:
    def check(ran: Ran) -> None:
        assert first_translations(ran.out) == expected

    return check


# What the README says of a command beyond that it runs.
REMARKS: dict[tuple[str, ...], Callable[[Ran], None]] = {
    ("evaluate", "en-es", "--lexicon", "en-es.txt"): said("coverage: 300 of 300"),
    ("translate", "en-es", "house", "water", "-k", "3"): translated({"house": "casa", "water": "agua"}),
    ("translate", "en-es", "casa", "--reverse"): translated({"casa": "house"}),
}


def run_make_line(args: list[str]) -> None:
    """A target of the Makefile, which is not made here."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(args[1:]) <= set(targets), args


def run_pip_line(args: list[str]) -> None:
    """An installation, which is not done here: of this package, with extras that it has."""
    assert args[1] == "install", args
    for wanted in args[2:]:
        # Version 0.2.0 is on no package index, so `pip install qwp` would fail.
        found = re.fullmatch(r"\.(?:\[(?P<extras>[\w,]+)\])?", wanted)
        assert found, f"pip install {wanted} is not the package"
        extras = set((found["extras"] or "").split(",")) - {""}
        assert extras <= set(pyproject()["project"]["optional-dependencies"]), wanted


def run_git_line(args: list[str]) -> None:
    """Check that the command clones this repository, and run nothing."""
    assert args == ["git", "clone", pyproject()["project"]["urls"]["Source"]], args


def run_cd_line(args: list[str]) -> None:
    """Check that the folder is that of the clone."""
    assert args == ["cd", pyproject()["project"]["urls"]["Source"].rpartition("/")[2]], args


def run_shell(block: Block) -> None:
    programs: dict[str, Callable[[Command], None]] = {
        "git": lambda command: run_git_line(command.args),
        "cd": lambda command: run_cd_line(command.args),
        "qwp": run_qwp_line,
        "make": lambda command: run_make_line(command.args),
        "pip": lambda command: run_pip_line(command.args),
    }
    for command in commands(on_this_machine(block.text)):
        programs[command.args[0]](command)


def imported_by(code: str) -> Iterator[str]:
    """The libraries that a program imports at its top."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]


def run_python(block: Block, names: dict[str, Any]) -> None:
    """With the names that earlier blocks have set; what gensim and its like are needed for is left out without them."""
    if any(map(is_missing, imported_by(block.text))):
        return
    code = "\n" * (block.line - 1) + on_this_machine(block.text)  # so that a traceback has the line of the document
    exec(compile(code, str(block.path), "exec"), names)


def run_blocks(path: Path, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run all blocks of a document in order. Returns the names that those in Python have set, and those given."""
    names = dict(given or {})
    for block in blocks(path):
        if block.reason is not None:
            continue
        try:
            if block.language == "sh":
                run_shell(block)
            elif block.language == "python":
                run_python(block, names)
        except BaseException as error:
            error.args = (f"the block of {block.where}: {error}",)
            raise
    return names


@pytest.mark.slow
def test_every_block_of_the_readme_runs(folder: Path, quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_blocks(README)
    assert names["alignment"].translate("house")["house"][0].word == "casa"
    for name in (
        "en-es.tsv",
        "en.aligned.vec",
        "en-es.html",
        "figures",
        "converted.npz",
        "adapter.npz",
        "en-es-python",
    ):
        assert (folder / name).exists(), name
    assert "succeeded" in capsys.readouterr().out


@pytest.mark.slow
def test_every_block_of_the_tasks_runs(folder: Path, quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    names = run_blocks(TASKS)
    assert first_translations((folder / "translations.tsv").read_text("utf-8")) == {"house": "casa", "water": "agua"}
    assert names["found"]["house"][0].word == "casa"
    assert names["found"].unknown == ["Madrid"]
    assert names["together"].pair("es", "fr").translate("casa")["casa"][0].word == "maison"
    assert names["aligner"].transform(["house", "water"]).shape == (2, DIM)
    assert len(names["alignments"]) == 3
    assert "Alignment(en 300 x 12 -> es 300 x 12, qwp, succeeded" in capsys.readouterr().out


@pytest.mark.slow
def test_the_output_of_the_demo_is_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the first digit of each line, because figures depend on the CPU."""
    monkeypatch.chdir(tmp_path)
    ran = run_qwp("demo")
    assert ran.code == 0
    printed = " ".join((ran.out + ran.err).split())
    (block,) = (block for block in blocks(README) if block.language == "text")
    for line in block.text.splitlines():
        begin = " ".join(re.split(r"[\d,]", line)[0].split())
        assert begin in printed, line


def test_the_readme_is_short_and_all_of_it_runs() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= MOST_LINES
    assert {block.language for block in blocks(README)} == {"sh", "text", "python"}
    assert not [block for block in blocks(README) if block.reason]


def test_tasks_are_run_or_say_why_not() -> None:
    assert {block.language for block in blocks(TASKS)} == {"sh", "python"}
    assert {block.text: block.reason for block in blocks(TASKS) if block.reason} == NOT_RUN


def test_a_block_that_is_wrong_is_noticed() -> None:
    for line, problem in {
        "make nothing": "nothing",
        "pip install .[nothing]": "nothing",
        "pip install qwp": "is not the package",
        "git clone https://example.org/qwp": "example.org",
        "pip install word2vec": "is not the package",
        "qwp info none.vec": "none.vec does not exist",
        "qwp translate": "Missing argument",
        "cat en.vec": "cat",
    }.items():
        with pytest.raises((AssertionError, KeyError), match=re.escape(problem)):
            run_shell(Block(README, "sh", 1, line))
