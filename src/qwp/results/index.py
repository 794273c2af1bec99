"""alignment.json: everything about an alignment but its arrays."""

from __future__ import annotations

from pathlib import Path

from qwp.judging.verdict import VERDICTS
from qwp.results import saved
from qwp.results.provenance import PROVENANCE
from qwp.results.saved import Stored
from qwp.results.schema import Anything, ByName, Each, Flag, Maybe, Number, Record, Text, Whole
from qwp.spaces.normalization import STEPS

_AGREEMENT = Record({"pairs": Whole(), "share": Number(), "mean_csls": Number()})
_SHARE = Record({"p1": Number(), "low": Number(), "high": Number()})
_SCALE = Record(
    {
        "agreement": Number(),
        "dimensions": Whole(),
        "lead": Number(),
        "lead_spread": Number(),
        "back_lead": Number(),
        "back_lead_spread": Number(),
        "real": Flag(),
        "words": Whole(),
    },
    optional=frozenset({"words"}),
)
_ESTIMATE = Record(
    {
        "overall": _SHARE,
        "bands": Each(Record({"first": Whole(), "last": Whole(), "share": _SHARE}), most=100),
        "scale": _SCALE,
        "n_words": Whole(),
    }
)
_QUALITY = Record(
    {
        "verdict": Text(choices=VERDICTS),
        "explanation": Text(),
        "ratio": Number(),
        "n_words": Whole(),
        "fitted": _AGREEMENT,
        "random": _AGREEMENT,
        "held_out": _AGREEMENT,
        "held_out_random": _AGREEMENT,
        "runs": Whole(),
        "thorough": Flag(),
        "found_again": Whole(),
        "deviation": Maybe(Number()),
        "z": Maybe(Number()),
        "estimate": Maybe(_ESTIMATE),
        "partners": Maybe(Record({"src": Number(), "tgt": Number()})),
    },
    optional=frozenset({"runs", "thorough", "found_again", "deviation", "z", "estimate", "partners"}),
)
_STEPS = Each(Text(choices=STEPS), most=100)
CONTENT = Record(
    {
        "provenance": PROVENANCE,
        "normalization": Record({"src": _STEPS, "tgt": _STEPS}),
        "quality": _QUALITY,
        "history": Each(ByName(Anything())),
    }
)


def read_index(folder: Path) -> Stored:
    """The index of a saved alignment, checked; its vectors stay unread."""
    return saved.read_index(folder, saved.ALIGNMENT, {1: CONTENT, saved.SCHEMA: CONTENT})
