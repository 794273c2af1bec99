"""The two sides of an alignment."""

from __future__ import annotations

from typing import Literal, TypeAlias

Side: TypeAlias = Literal["src", "tgt"]
SIDES: tuple[Side, Side] = ("src", "tgt")
