"""What can be asked of the explorer, by name: views, downloads and changes, each from a session and what was asked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from qwp.errors import InputError
from qwp.explore import views
from qwp.explore.findings import Findings
from qwp.explore.opened import MARKS, RIGHT, Explored
from qwp.explore.session import FAILED, Session
from qwp.explore.views import CompareQuery, Json, TableQuery
from qwp.spaces.embeddings import SIDES, Side

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


_MOST_ALIGNMENTS = 1000
_MOST_ROWS = 200
_MOST_MARKS = 20_000
_NONE = "none"


def _alignment(session: Session, asked: Asked, name: str = "a") -> tuple[int, Explored]:
    number = asked.whole(name, 0, 0, _MOST_ALIGNMENTS)
    return number, session.get(number)


def _side(asked: Asked) -> Side:
    return "src" if asked.choice("side", SIDES, "src") == "src" else "tgt"


def _overview(session: Session, asked: Asked) -> Json:
    asked.finish()
    return views.overview(session.explored)


def _progress(session: Session, asked: Asked) -> Json:
    """How far the work in the background is."""
    number, explored = _alignment(session, asked)
    asked.finish()
    realigning = session.realigning
    return {
        "work": session.work(number).shown(),
        "table": explored.findings is not None,
        "map": explored.plane is not None,
        "realigning": None if realigning is None else realigning.shown(),
    }


def _complete(session: Session, asked: Asked) -> Json:
    _, explored = _alignment(session, asked)
    side, start, n = _side(asked), asked.text("q"), asked.whole("n", 8, 1, 50)
    asked.finish()
    return views.completion(explored, side, start, n)


def _word(session: Session, asked: Asked) -> Json:
    _, explored = _alignment(session, asked)
    side, word, k = _side(asked), asked.text("w"), asked.whole("k", 10, 1, 50)
    asked.finish()
    return views.word(explored, side, word, k)


def _table_query(asked: Asked, most: int) -> TableQuery:
    return TableQuery(
        sort=asked.choice("sort", views.SORTS, "frequency"),
        descending=asked.choice("dir", ("asc", "desc"), "asc") == "desc",
        text=asked.text("q", ""),
        least=asked.number("least", 0.0, 0.0, 1.0),
        most=asked.number("most", 1.0, 0.0, 1.0),
        first=asked.whole("first", 1, 1, views.MOST_RANK),
        last=asked.whole("last", views.MOST_RANK, 1, views.MOST_RANK),
        right=asked.choice("right", views.RIGHTS, "any"),
        mutual=asked.choice("mutual", views.MUTUALS, "any"),
        mark=asked.choice("mark", views.MARKED, "any"),
        suspect=asked.choice("suspect", views.SUSPECTS, "any"),
        offset=asked.whole("offset", 0, 0, 10**9),
        limit=asked.whole("limit", 50, 1, most),
    )


def _needed(session: Session, number: int) -> Findings | None:
    """What is known of all words; None where that is not known yet."""
    work = session.work(number)
    found = session.findings(number)
    if found is None and work.state == FAILED:
        raise InputError(f"the words of this alignment could not be compared: {work.message}")
    return found


def _table(session: Session, asked: Asked) -> Json:
    number, explored = _alignment(session, asked)
    query = _table_query(asked, _MOST_ROWS)
    asked.finish()
    found = _needed(session, number)
    if found is None:
        return {"ready": False, "work": session.work(number).shown()}
    return {"ready": True, **views.table(explored, found, query)}


def _points(session: Session, asked: Asked) -> Json:
    number, explored = _alignment(session, asked)
    asked.finish()
    found, plane = _needed(session, number), explored.plane
    if found is None or plane is None:
        work = session.work(number)
        if work.state == FAILED:
            raise InputError(f"the map could not be made: {work.message}")
        return {"ready": False, "work": work.shown()}
    return {"ready": True, **views.points(explored, found, plane)}


def _about(session: Session, asked: Asked) -> Json:
    _, explored = _alignment(session, asked)
    asked.finish()
    return views.about(explored)


def _compare(session: Session, asked: Asked) -> Json:
    (first, a), (second, b) = _alignment(session, asked), _alignment(session, asked, "b")
    query = CompareQuery(
        shown=asked.choice("shown", views.SHOWN, "different"),
        text=asked.text("q", ""),
        offset=asked.whole("offset", 0, 0, 10**9),
        limit=asked.whole("limit", 50, 1, _MOST_ROWS),
    )
    asked.finish()
    found = _needed(session, first), _needed(session, second)
    if found[0] is None or found[1] is None:
        return {"ready": False, "work": session.work(second if found[1] is None else first).shown()}
    return {"ready": True, **views.comparison(a, b, (found[0], found[1]), query)}


# --------------------------------------------------------------------------- changes


def _mark(session: Session, asked: Asked) -> Json:
    """Mark pairs as right or wrong, or take their marks away."""
    _, explored = _alignment(session, asked)
    pairs, mark = asked.pairs("pairs", _MOST_MARKS), asked.choice("mark", (*MARKS, _NONE))
    asked.finish()
    src, tgt = (explored.alignment.side(side).space for side in SIDES)
    for pair in pairs:
        if pair[0] not in src or pair[1] not in tgt:
            raise InputError(f"received the pair {pair!r}, expected a source word and a target word of this alignment")
    return _marked(explored, explored.corrections.set(pairs, None if mark == _NONE else mark))


def _mark_by_lexicon(session: Session, asked: Asked) -> Json:
    """Take the pairs of the lexicon that both vocabularies have for right."""
    _, explored = _alignment(session, asked)
    asked.finish()
    if explored.lexicon is None:
        raise InputError("no lexicon was given: start with `qwp explore DIR --lexicon FILE`")
    src, tgt = (explored.alignment.side(side).space for side in SIDES)
    pairs = [pair for pair in explored.lexicon.pairs if pair[0] in src and pair[1] in tgt]
    return _marked(explored, explored.corrections.set(pairs, RIGHT))


def _marked(explored: Explored, written: bool) -> Json:
    return {"marks": explored.corrections.counts(), "written": written, "folder": str(explored.folder)}


def _realign(session: Session, asked: Asked) -> Json:
    number, _ = _alignment(session, asked)
    asked.finish()
    return session.realign(number).shown()


def _stop(session: Session, asked: Asked) -> Json:
    asked.finish()
    session.stop_realigning()
    return {}


# --------------------------------------------------------------------------- downloads


def _pairs_file(session: Session, asked: Asked) -> tuple[str, str]:
    number, explored = _alignment(session, asked)
    query = _table_query(asked, _MOST_ROWS)
    asked.finish()
    found = _needed(session, number)
    if found is None:
        raise InputError("the words are still being compared: wait a moment")
    return _file_name(explored, "pairs.tsv"), views.pairs_tsv(explored, found, query)


def _corrections_file(session: Session, asked: Asked) -> tuple[str, str]:
    _, explored = _alignment(session, asked)
    mark = asked.choice("mark", MARKS, RIGHT)
    asked.finish()
    lines = ["\t".join(pair) for pair in explored.corrections.pairs(mark)]
    return _file_name(explored, "corrections.tsv"), "".join(f"{line}\n" for line in lines)


def _file_name(explored: Explored, kind: str) -> str:
    """A name of letters, digits and dashes: it goes into a header."""
    stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(explored.name).name)[:60]
    return f"{stem.strip('-') or 'qwp'}-{kind}"


VIEWS: dict[str, Callable[[Session, Asked], Json]] = {
    "api/overview": _overview,
    "api/progress": _progress,
    "api/complete": _complete,
    "api/word": _word,
    "api/table": _table,
    "api/points": _points,
    "api/about": _about,
    "api/compare": _compare,
}
CHANGES: dict[str, Callable[[Session, Asked], Json]] = {
    "api/mark": _mark,
    "api/mark-by-lexicon": _mark_by_lexicon,
    "api/realign": _realign,
    "api/stop": _stop,
}
DOWNLOADS: dict[str, Callable[[Session, Asked], tuple[str, str]]] = {
    "download/pairs.tsv": _pairs_file,
    "download/corrections.tsv": _corrections_file,
}


def finite(value: Any) -> Any:
    """The same with null for numbers that JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        # Long lists of whole numbers and words are most of what is sent.
        if value and type(value[0]) in (int, str):
            return value
        return [finite(entry) for entry in value]
    return value
