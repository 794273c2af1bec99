"""`qwp muse`: run a command line of unsupervised.py or supervised.py of MUSE, and write the same files."""

from __future__ import annotations

import importlib.util
import re
import secrets
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer

from qwp.cli import console, scores
from qwp.cli.aliases import boolean
from qwp.cli.compat import runs
from qwp.cli.compat.runs import MethodSettings, Parser, Request
from qwp.errors import InputError
from qwp.judging.evaluation import Evaluation, evaluate
from qwp.methods import METHODS
from qwp.results.alignment import Alignment
from qwp.showing import terminal
from qwp.spaces.io.files import atomic_write, check_file
from qwp.spaces.lexicon import Lexicon

SCRIPTS = ("unsupervised", "supervised")
MAPPING = "best_mapping"
# The folder of the dictionaries that MUSE calls `default`.
_DICTIONARIES = Path("data") / "crosslingual" / "dictionaries"
_TRAINING, _TEST = "0-5000", "5000-6500"
_MAX_VOCAB, _REFINEMENT = 200_000, 5
_ID_LENGTH = 10
_DIRECTIONS = {"S2T": "forward", "T2S": "backward", "S2T|T2S": "union", "S2T&T2S": "mutual"}

_DESCRIPTION = (
    "Align two files of word vectors and write vectors-LANG.txt for both, and the mapping, into "
    "EXP_PATH/EXP_NAME/EXP_ID, as {script}.py of MUSE does. Its options are taken as they are."
)
# Parameters of the method adversarial by the option of MUSE; other methods ignore these options.
GAME = {
    "map_beta": "beta",
    "dis_hid_dim": "hidden_size",
    "dis_input_dropout": "dropout",
    "dis_steps": "discriminator_steps",
    "dis_most_frequent": "train_words",
    "dis_smooth": "smoothing",
    "n_epochs": "epochs",
    "batch_size": "batch_size",
    "lr_decay": "rate_decay",
}
_GAME_ONLY = (
    *("map_id_init", "dis_layers", "dis_dropout", "dis_lambda", "dis_clip_weights", "epoch_size"),
    *("map_optimizer", "dis_optimizer", "min_lr", "lr_shrink"),
)
_INTEGERS = ("dis_hid_dim", "dis_steps", "dis_most_frequent", "n_epochs", "batch_size", "dis_layers", "epoch_size")
# Zero, the usual value, turns these options off.
_OFF_AT_ZERO = ("dico_threshold", "dico_min_size", "dico_max_size")


def parser(script: str) -> Parser:
    """Return the parser of a script."""
    made = Parser(f"muse {script}", _DESCRIPTION.format(script=script))
    for name in ("src_lang", "tgt_lang", "exp_path", "exp_name", "exp_id", "dico_eval", "dico_method"):
        made.add_argument(f"--{name}", metavar="NAME")
    for name in ("src_emb", "tgt_emb"):
        made.add_argument(f"--{name}", metavar="FILE", type=Path, required=True)
    for name in ("seed", "verbose", "emb_dim", "max_vocab", "n_refinement", "dico_max_rank"):
        made.add_argument(f"--{name}", metavar="N", type=int)
    for name in _OFF_AT_ZERO:
        made.add_argument(f"--{name}", metavar="X", type=float)
    made.add_argument("--cuda", metavar="true|false", type=boolean)
    made.add_argument("--export", choices=("txt", "pth", ""))
    made.add_argument("--dico_build", choices=tuple(_DIRECTIONS))
    made.add_argument("--normalize_embeddings", metavar="STEPS")
    if script == "supervised":
        made.add_argument("--dico_train", metavar="FILE")
        return made
    made.add_argument("--adversarial", metavar="true|false", type=boolean)
    for name in (*GAME, *_GAME_ONLY):
        kind = str if name in ("map_id_init", "map_optimizer", "dis_optimizer") else float
        made.add_argument(f"--{name}", metavar="X", type=int if name in _INTEGERS else kind)
    return made


@console.guarded
def command(ctx: typer.Context) -> None:
    """Run a command line of MUSE and write its files: `qwp muse unsupervised --src_lang en --tgt_lang es ...`."""
    script = _script(ctx.args)
    given = parser(script).given(ctx.args[1:])
    gold = _gold(given)
    folder = _folder(given)
    asked = request(script, given, folder)
    for path in (asked.src, asked.tgt):
        check_file(path)
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        alignment = runs.run(asked)
    except InputError:
        for path in missing:
            if not any(path.iterdir()):
                path.rmdir()
        raise
    files = [*asked.outs.values(), write_mapping(alignment, folder)]
    found = None if gold is None else _scores(alignment, gold)
    if found is not None and not asked.json:
        scores.show(found)
    more = {} if found is None else {"evaluation": found.to_dict()}
    runs.report("muse", alignment, files, json=asked.json, **more)


def _script(args: list[str]) -> str:
    name = Path(args[0]).name.removesuffix(".py") if args else ""
    if name == "evaluate":
        raise InputError("evaluate.py of MUSE is `qwp evaluate --src FILE --tgt FILE --lexicon FILE` here")
    if name in ("-h", "--help"):
        parser(SCRIPTS[0]).print_help()
        raise typer.Exit
    if name not in SCRIPTS:
        received = f"received {args[0]!r}" if args else "no script was named"
        raise InputError(f"{received}; expected `qwp muse unsupervised ...` or `qwp muse supervised ...`")
    return name


def request(script: str, given: Mapping[str, Any], folder: Path) -> Request:
    """Translate the options."""
    runs.check_method(given)
    if given.get("adversarial") is False:
        raise InputError("--adversarial false is not supported: an initial map cannot be given here")
    if given.get("export") == "pth":
        raise InputError("--export pth is not supported: it holds an object of MUSE itself; expected --export txt")
    lexicon = _seed_lexicon(given) if script == "supervised" else None
    method = "qwp" if script == "unsupervised" else "identical" if lexicon is None else "procrustes"
    if script == "unsupervised" and "method" not in given:
        terminal.note("note: unsupervised.py is run by method qwp; --method adversarial is the method of MUSE")
    settings = MethodSettings(given.get("method", method))
    _take(given, settings, default_rounds=script == "supervised")
    names = (given.get("src_lang", "en"), given.get("tgt_lang", "es"))
    src_out, tgt_out = (folder / f"vectors-{name}.txt" for name in names)
    if names[0] == names[1]:
        raise InputError(f"--src_lang and --tgt_lang are both {names[0]}; expected two names, which become file names")
    most = given.get("max_vocab", _MAX_VOCAB)
    return Request(
        given["src_emb"],
        given["tgt_emb"],
        settings,
        {} if given.get("export") == "" else {"src": src_out, "tgt": tgt_out},
        lexicon=lexicon,
        max_vocab=most if most > 0 else None,
        dim=given.get("emb_dim"),
        whole_files=True,
        json="json" in given,
    )


def _take(given: Mapping[str, Any], settings: MethodSettings, *, default_rounds: bool) -> None:
    """Translate the options to parameters of the method."""
    if "map" in METHODS[settings.method].parameter_names():
        settings.values["map"] = "orthogonal"  # as in MUSE, the target space stays unchanged
    if "cuda" in given:
        settings.values["device"] = "cuda" if given["cuda"] else "cpu"
    if given.get("seed", -1) >= 0:
        settings.values["seed"] = given["seed"]
    if "normalize_embeddings" in given:
        settings.values["normalize"] = runs.normalize(given["normalize_embeddings"])
    _take_refinement(given, settings, default_rounds=default_rounds)
    if settings.method == "adversarial":
        settings.take(given, GAME)
    else:
        settings.ignore(given, tuple(GAME))
    settings.ignore(given, _GAME_ONLY)
    settings.ignored += [name for name in _OFF_AT_ZERO if given.get(name)]


def _take_refinement(given: Mapping[str, Any], settings: MethodSettings, *, default_rounds: bool) -> None:
    if default_rounds or "n_refinement" in given:
        settings.set("n_refinement", "refine", given.get("n_refinement", _REFINEMENT))
    if given.get("dico_max_rank", 0) > 0:
        settings.set("dico_max_rank", "refine_words", given["dico_max_rank"])
    if "dico_build" in given:
        settings.set("dico_build", "refine_directions", _DIRECTIONS[given["dico_build"]])
    neighbours = re.fullmatch(r"csls_knn_(\d+)", given.get("dico_method", ""))
    if neighbours:
        settings.values["csls_k"] = int(neighbours[1])
    elif "dico_method" in given:
        settings.ignored.append("dico_method")


def _seed_lexicon(given: Mapping[str, Any]) -> Path | None:
    """Return the seed dictionary; None stands for identical words."""
    asked = given.get("dico_train", "default")
    if asked in ("identical_char", "identical"):
        return None
    path = _default(given, _TRAINING) if asked == "default" else Path(asked)
    if not path.is_file():
        raise InputError(f"the dictionary {path} of --dico_train {asked} does not exist; expected a file")
    return path


def _default(given: Mapping[str, Any], part: str) -> Path:
    return _DICTIONARIES / f"{given.get('src_lang', 'en')}-{given.get('tgt_lang', 'es')}.{part}.txt"


def _gold(given: Mapping[str, Any]) -> Lexicon | None:
    """Return the dictionary for the evaluation, which is read before the alignment; None without one."""
    asked = given.get("dico_eval", "default")
    path = _default(given, _TEST) if asked == "default" else Path(asked)
    if asked == "default" and not path.is_file():
        if "dico_eval" in given:
            terminal.note(f"note: --dico_eval default: {path} does not exist, the result is not scored")
        return None
    return Lexicon.load(path)


def _scores(alignment: Alignment, gold: Lexicon) -> Evaluation | None:
    try:
        return evaluate(alignment, gold)
    except InputError as error:  # the vectors are already written
        console.warn(f"the result is not scored: {error}")
        return None


def _folder(given: Mapping[str, Any]) -> Path:
    """Return the folder of the experiment, with a random name unless --exp_id is given."""
    letters = string.ascii_lowercase + string.digits
    name = given.get("exp_id") or "".join(secrets.choice(letters) for _ in range(_ID_LENGTH))
    return Path(given.get("exp_path") or "dumped") / (given.get("exp_name") or "debug") / name


def write_mapping(alignment: Alignment, folder: Path) -> Path:
    """Write the matrix W of MUSE, which maps columns: a torch file, or a NumPy file without torch."""
    matrix = np.ascontiguousarray(alignment.src_map.T)
    if importlib.util.find_spec("torch") is None:
        path = folder / f"{MAPPING}.npy"
        with atomic_write(path) as file:
            np.save(file, matrix)
        terminal.note(f"note: torch is not installed: the mapping is in {path}, for numpy.load")
        return path
    import torch

    path = folder / f"{MAPPING}.pth"
    with atomic_write(path) as file:
        torch.save(matrix, file)
    return path
