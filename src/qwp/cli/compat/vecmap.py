"""`qwp vecmap`: run a command line of map_embeddings.py of VecMap, and write the two mapped files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from qwp.cli import console
from qwp.cli.aliases import PRECISIONS
from qwp.cli.compat import runs
from qwp.cli.compat.runs import MethodSettings, Parser, Request
from qwp.errors import InputError
from qwp.showing import terminal

_DESCRIPTION = (
    "Map two files of word vectors into one space and write both, as map_embeddings.py of VecMap does. Its options are "
    "taken as they are."
)


@dataclass(frozen=True)
class VecMapMode:
    """The method and parameters for a mode of VecMap. remark: how the result differs from that of VecMap."""

    method: str
    values: dict[str, Any] = field(default_factory=dict)
    remark: str | None = None


_UNSUPERVISED = VecMapMode("qwp", remark="--method self-learning is the method of VecMap")
_SUPERVISED = VecMapMode("procrustes", remark="its map is orthogonal, the map of VecMap is re-weighted")
_FROM_LEXICON, _FROM_STRINGS = {"start": "lexicon"}, {"start": "identical"}
_OF_2017 = {"map": "orthogonal", "normalize": "unit,center"}
SUPERVISED = {
    "supervised": _SUPERVISED,
    "semi_supervised": VecMapMode("self-learning", _FROM_LEXICON),
    "aaai2018": _SUPERVISED,
    "acl2017_seed": VecMapMode("self-learning", {**_FROM_LEXICON, **_OF_2017}),
    "emnlp2016": VecMapMode("procrustes", {"normalize": "unit,center"}),
    "init_dictionary": VecMapMode("procrustes"),
}
UNSUPERVISED = {
    "unsupervised": _UNSUPERVISED,
    "identical": VecMapMode("self-learning", _FROM_STRINGS),
    "acl2018": VecMapMode("self-learning"),
    "init_unsupervised": _UNSUPERVISED,
    "init_identical": VecMapMode("self-learning", _FROM_STRINGS),
}
# Parameters here by option.
PARAMETERS = {
    "seed": "seed",
    "csls": "csls_k",
    "threshold": "tol",
    "stochastic_initial": "keep",
    "stochastic_multiplier": "keep_growth",
    "stochastic_interval": "patience",
    "direction": "refine_directions",
}
IGNORED = ("batch_size", "validation", "log")
REFUSED = {
    "acl2017": "initialization from numerals has no counterpart: --identical is similar",
    "init_numerals": "it has no counterpart: --init_identical is similar",
    "dim_reduction": "it has no counterpart: reduce the vectors beforehand",
    "unconstrained": "it is `--method least-squares` with a dictionary",
}


def parser() -> Parser:
    """Return the parser of map_embeddings.py."""
    made = Parser("vecmap", _DESCRIPTION)
    # The default usage of argparse lists all modes in one line.
    made.usage = "%(prog)s MODE [options] src_input trg_input src_output trg_output"
    for name in ("src_input", "trg_input", "src_output", "trg_output"):
        made.add_argument(name, type=Path)
    modes = made.add_mutually_exclusive_group()
    for name in SUPERVISED:
        flags = ["-d", f"--{name}"] if name == "init_dictionary" else [f"--{name}"]
        modes.add_argument(*flags, metavar="DICTIONARY", type=Path)
    for name in (*UNSUPERVISED, "acl2017", "init_numerals"):
        modes.add_argument(f"--{name}", action="store_true")
    made.add_argument("--encoding")
    made.add_argument("--precision", choices=tuple(PRECISIONS))
    for name in ("cuda", "whiten", "self_learning"):
        made.add_argument(f"--{name}", action="store_true")
    made.add_argument("-v", "--verbose", action="store_true")
    made.add_argument("-c", "--orthogonal", action="store_true")
    made.add_argument("-u", "--unconstrained", action="store_true")
    steps = ("unit", "center", "unitdim", "centeremb", "none")
    made.add_argument("--normalize", nargs="*", choices=steps, metavar="STEP")
    for name in ("seed", "batch_size", "unsupervised_vocab", "vocabulary_cutoff", "dim_reduction"):
        made.add_argument(f"--{name}", type=int, metavar="N")
    made.add_argument("--stochastic_interval", type=int, metavar="N")
    made.add_argument("--csls", type=int, nargs="?", const=10, metavar="N")
    for name in ("threshold", "stochastic_initial", "stochastic_multiplier"):
        made.add_argument(f"--{name}", type=float, metavar="X")
    for name in ("src_reweight", "trg_reweight"):
        made.add_argument(f"--{name}", type=float, nargs="?", const=1.0, metavar="X")
    for name in ("src_dewhiten", "trg_dewhiten"):
        made.add_argument(f"--{name}", choices=("src", "trg"))
    made.add_argument("--direction", choices=("forward", "backward", "union"))
    for name in ("validation", "log"):
        made.add_argument(f"--{name}", metavar="FILE")
    return made


@console.guarded
def command(ctx: typer.Context) -> None:
    """Run a command line of VecMap and write its two files: `qwp vecmap --unsupervised A B A.OUT B.OUT`."""
    given = parser().given(ctx.args)
    asked = request(given)
    alignment = runs.run(asked)
    runs.report("vecmap", alignment, list(asked.outs.values()), json=asked.json)


def request(given: Mapping[str, Any]) -> Request:
    """Translate the options."""
    runs.check_method(given)
    _refuse(given)
    name, mode = _mode(given)
    settings = MethodSettings(given.get("method", mode.method))
    if settings.method == mode.method:
        settings.values.update(mode.values)
    if mode.remark is not None and "method" not in given:
        terminal.note(f"note: --{name} is run by method {mode.method}; {mode.remark}")
    settings.values["device"] = "cuda" if "cuda" in given else "cpu"
    settings.take(given, PARAMETERS)
    for option, parameter in (("vocabulary_cutoff", "train_words"), ("unsupervised_vocab", "start_words")):
        if given.get(option, 0) > 0:  # zero means all words
            settings.set(option, parameter, given[option])
    _take_map(given, settings)
    if "normalize" in given:
        settings.values["normalize"] = runs.normalize(",".join(given["normalize"]))
    if "precision" in given:
        settings.values["dtype"] = PRECISIONS[given["precision"]]
        if given["precision"] == "fp16":
            terminal.note("note: --precision fp16 has no counterpart: float32 is used")
    settings.ignore(given, IGNORED)
    return Request(
        given["src_input"],
        given["trg_input"],
        settings,
        {"src": given["src_output"], "tgt": given["trg_output"]},
        lexicon=given[name] if name in SUPERVISED else None,
        json="json" in given,
    )


def _mode(given: Mapping[str, Any]) -> tuple[str, VecMapMode]:
    """Return the mode, and the option that selects it."""
    modes = {**SUPERVISED, **UNSUPERVISED}
    names = [name for name in modes if name in given]
    if not names:
        raise InputError(
            "no mode was given; expected --unsupervised, --identical, --supervised DICTIONARY, "
            "--semi_supervised DICTIONARY or --acl2018"
        )
    if "self_learning" in given and names[0] == "init_dictionary":
        return names[0], modes["semi_supervised"]
    return names[0], modes[names[0]]


def _refuse(given: Mapping[str, Any]) -> None:
    """Refuse options that change the result and have no counterpart."""
    for name, why in REFUSED.items():
        if name in given:
            raise InputError(f"--{name} is not supported: {why}")
    if given.get("encoding", "utf-8").lower().replace("-", "").replace("_", "") != "utf8":
        raise InputError(
            f"--encoding {given['encoding']} is not supported: expected files in UTF-8; "
            f"`iconv -f {given['encoding']} -t utf-8` converts them"
        )
    if given.get("src_reweight") != given.get("trg_reweight"):
        raise InputError("--src_reweight and --trg_reweight differ; expected the same for both sides")
    if (given.get("src_dewhiten", "src"), given.get("trg_dewhiten", "trg")) != ("src", "trg"):
        raise InputError("each side is de-whitened on its own; expected --src_dewhiten src --trg_dewhiten trg")


def _take_map(given: Mapping[str, Any], settings: MethodSettings) -> None:
    """Translate the kind of the final map."""
    if "orthogonal" in given:
        settings.set("orthogonal", "map", "orthogonal")
    if "src_reweight" in given:
        settings.set("src_reweight", "reweight", given["src_reweight"])
    parts = [name for name in ("whiten", "src_dewhiten", "trg_dewhiten") if name in given]
    if parts and settings.method == "procrustes":
        settings.ignored += parts  # other methods de-whiten with map="reweighted"
