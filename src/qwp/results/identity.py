"""What tells one run from another: the same for its checkpoint and for its finished result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Identity:
    """Everything that decides a result.

    inputs: hash of the vectors of each space, by "src" and "tgt" or by the names of the languages, in their order.
    supervision: hashes of what the user knew besides them. hub: of several languages, the one the others are put onto.
    """

    version: str
    method: str
    config: Mapping[str, Any]
    seed: int
    inputs: Mapping[str, str]
    supervision: Mapping[str, str | None] = field(default_factory=dict)
    hub: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the order of the inputs is part of it."""
        values = asdict(self)
        values["order"] = list(self.inputs)
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    def difference(self, other: Identity | Mapping[str, Any]) -> str | None:
        """The first thing in which `other` differs, in words ("seed was 1, now 0" where this one is now), or None."""
        theirs = other.to_dict() if isinstance(other, Identity) else other
        return _difference(theirs, self.to_dict(), "")


def _difference(saved: Any, wanted: Any, name: str) -> str | None:
    if saved == wanted:
        return None
    if isinstance(saved, Mapping) and isinstance(wanted, Mapping):
        for key in sorted(set(saved) | set(wanted), key=str):
            if saved.get(key) != wanted.get(key):
                return _difference(saved.get(key), wanted.get(key), f"{name}.{key}" if name else str(key))
    return f"{name} was {saved!r}, now {wanted!r}"
