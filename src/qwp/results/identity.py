"""What tells one run from another: the same for its checkpoint and for its finished result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from qwp.results.schema import HASH, ByName, Each, Maybe, Record, Scalar, Text, Whole

VERSION = Text(most=100)
METHOD = Text(most=100)
CONFIG = ByName(Scalar())
SEED = Whole()
SUPERVISION = ByName(Maybe(HASH))
# What `Identity.to_dict` gives.
IDENTITY = Record(
    {
        "version": VERSION,
        "code": Maybe(VERSION),
        "method": METHOD,
        "config": CONFIG,
        "seed": SEED,
        "inputs": ByName(HASH),
        "supervision": SUPERVISION,
        "hub": Maybe(Text()),
        "order": Each(Text()),
    }
)
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Identity:
    """Everything that decides a result.

    inputs: hash of the vectors of each space, by "src" and "tgt" or by the names of the languages, the hub last.
    supervision: hashes of what the user knew besides them. hub: of several languages, the one the others are put onto.
    code: `code_version` of the program, by which an interrupted run of other code is told; None for a finished result,
    which is the same run whatever code reads it.
    """

    version: str
    method: str
    config: Mapping[str, Any]
    seed: int
    inputs: Mapping[str, str]
    supervision: Mapping[str, str | None] = field(default_factory=dict)
    hub: str | None = None
    code: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the order of the inputs is part of it."""
        values = asdict(self)
        values["order"] = list(self.inputs)
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    def difference(self, other: Identity | Mapping[str, Any]) -> str | None:
        """The first thing in which `other` differs, in words ("seed was 1, now 0" where this one is now), or None."""
        was, now = (other.to_dict() if isinstance(other, Identity) else other), self.to_dict()
        # The version first: where it differs, the parameters may have other names for no other reason.
        names = ("version", "code", "method", "hub", "order", "inputs", "supervision", "seed", "config")
        return next((words for name in names if (words := _in_words(name, was.get(name), now[name]))), None)


def _in_words(name: str, was: Any, now: Any) -> str | None:
    """How one part of two identities differs, or None where it does not."""
    if _same(was, now):
        return None
    if name == "version":
        return f"it was made by qwp {was}, this is qwp {now}"
    if name == "code":
        return None if was is None or now is None else f"it was made by other code: {was}, this is {now}"
    if name == "order":
        return f"the languages were {_listed(was)}, now they are {_listed(now)}"
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return f"{name} was {was!r}, now {now!r}"
    return _first_entry(name, was, now)


def _first_entry(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first entry in which two objects differ. One that is missing is the same as none."""
    for key in sorted(set(was) | set(now), key=str):
        if not _same(was.get(key), now.get(key)):
            if name in ("inputs", "supervision"):
                what = f"input for {key}" if name == "inputs" else key.replace("_", " ")
                # Most often the file is the same.
                hint = "; another file, or other words of it as by --max-vocab" if name == "inputs" else ""
                return f"it had another {what}: sha256 {_short(was.get(key))}, now {_short(now.get(key))}{hint}"
            return f"{name}.{key} was {was.get(key)!r}, now {now.get(key)!r}"
    return None


def _same(was: Any, now: Any) -> bool:
    """Whether two JSON values are the same. Python takes true for 1, JSON does not; 1 and 1.0 are one number."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return was.keys() == now.keys() and all(_same(was[key], now[key]) for key in was)
    return bool(was == now) and isinstance(was, bool) == isinstance(now, bool)


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names) if isinstance(names, list) else repr(names)


def _short(digest: Any) -> str:
    return "none" if digest is None else f"{str(digest)[:_SHOWN_DIGITS]}..."
