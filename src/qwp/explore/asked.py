"""What a request asks for: values that may come from anywhere, read with bounds, refused in plain words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from qwp.errors import InputError

MOST_TEXT = 500
"""Characters of a word or a filter."""
MOST_QUERY = 4096
"""Characters of the part of an address that asks."""
MOST_BODY = 4 << 20
"""Bytes that a request may bring."""
_MOST_FIELDS = 30


class Asked:
    """The values of a request by name. Each is taken once; `finish` refuses those that nobody took."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @classmethod
    def of_query(cls, query: str) -> Asked:
        """Those of an address."""
        if len(query) > MOST_QUERY:
            raise InputError(f"received a query of {len(query):,} characters, expected at most {MOST_QUERY:,}")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
        except ValueError as error:
            raise InputError(f"received a query that cannot be read ({error}), expected name=value pairs") from error
        if len(dict(pairs)) < len(pairs):
            raise InputError("received a name twice in the query, expected each once")
        return cls(dict(pairs))

    @classmethod
    def of_body(cls, body: bytes) -> Asked:
        """Those of a JSON object."""
        try:
            values = json.loads(body.decode("utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"received a body that is no JSON ({error}), expected one object") from error
        if not isinstance(values, dict):
            raise InputError(f"received a {type(values).__name__} as body, expected one JSON object")
        return cls(values)

    def finish(self) -> None:
        """Refuse what was not asked for."""
        if self._values:
            name = next(iter(self._values))
            raise InputError(f"received {str(name)[:50]!r}, which is not known here: leave it out")

    def _take(self, name: str, usual: Any) -> Any:
        if name not in self._values and usual is None:
            raise InputError(f"{name} is missing")
        return self._values.pop(name, usual)

    def text(self, name: str, usual: str | None = None) -> str:
        """A text of bounded length."""
        value = self._take(name, usual)
        return _text(name, value)

    def whole(self, name: str, usual: int | None, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self._take(name, usual)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise InputError(f"{name}={_brief(value)} is out of range; expected a whole number, {least} to {most}")
        return value

    def number(self, name: str, usual: float, least: float, most: float) -> float:
        """A number within bounds."""
        value = self._take(name, usual)
        try:
            found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            found = math.nan
        if not least <= found <= most:
            raise InputError(f"{name}={_brief(value)} is out of range; expected a number, {least:g} to {most:g}")
        return found

    def choice(self, name: str, choices: Sequence[str], usual: str | None = None) -> str:
        """One of some names."""
        value = self._take(name, usual)
        if value not in choices:
            raise InputError(f"{name}={_brief(value)} is not known; expected one of {', '.join(choices)}")
        return str(value)

    def pairs(self, name: str, most: int) -> list[tuple[str, str]]:
        """Pairs of words as a list of lists."""
        value = self._take(name, None)
        if not isinstance(value, list) or len(value) > most:
            raise InputError(f"{name} should be a list of at most {most:,} pairs of words")
        return [_pair(name, each) for each in value]


def _pair(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{name} holds {_brief(value)}, expected pairs of words: [source, target]")
    src, tgt = (_text(name, word) for word in value)
    if not src or not tgt:
        raise InputError(f"{name} holds {_brief(value)}, expected words that are not empty")
    return src, tgt


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        raise InputError(f"{name}={_brief(value)} should be a text of at most {MOST_TEXT} characters")
    return value


def _brief(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
