"""The routes of the explorer: views, changes and downloads by address, and the checks of their arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from qwp.errors import InputError
from qwp.explore import views
from qwp.explore.pairs import PairTable
from qwp.explore.session import FAILED, Session
from qwp.explore.views import CompareQuery, Json, TableQuery
from qwp.explore.workspace import Workspace
from qwp.results.corrections import MARKS, RIGHT
from qwp.results.schema import shown
from qwp.spaces.embeddings import SIDES, Side

MAX_TEXT = 500
"""Characters of a word or a filter."""
MAX_QUERY = 4096
"""Characters of the query of an address."""
MAX_BODY = 4 << 20
"""Bytes of the body of a request."""
_MAX_FIELDS = 30


class Arguments:
    """The arguments of a request by name. Each is taken once; `finish` refuses those that no one took."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @classmethod
    def of_query(cls, query: str) -> Arguments:
        """Parse the query of an address."""
        if len(query) > MAX_QUERY:
            raise InputError(f"received a query of {len(query):,} characters, expected at most {MAX_QUERY:,}")
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
        except ValueError as error:
            raise InputError(f"received a query that cannot be read ({error}), expected name=value pairs") from error
        if len(dict(pairs)) < len(pairs):
            raise InputError("received a name twice in the query, expected each once")
        return cls(dict(pairs))

    @classmethod
    def of_body(cls, body: bytes) -> Arguments:
        """Parse a JSON object."""
        try:
            values = json.loads(body.decode("utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"received a body that is no JSON ({error}), expected one object") from error
        if not isinstance(values, dict):
            raise InputError(f"received a {type(values).__name__} as body, expected one JSON object")
        return cls(values)

    def finish(self) -> None:
        """Raise an InputError for an argument that was not taken."""
        if self._values:
            name = next(iter(self._values))
            raise InputError(f"received {str(name)[:50]!r}, which this address does not take: leave it out")

    def _take(self, name: str, default: Any) -> Any:
        if name not in self._values and default is None:
            raise InputError(f"{name} is missing")
        return self._values.pop(name, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Take a text of bounded length."""
        value = self._take(name, default)
        return _checked_text(name, value)

    def whole(self, name: str, default: int | None, least: int, most: int) -> int:
        """Take an integer within bounds."""
        value = self._take(name, default)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise InputError(f"{name}={shown(value)} is out of range; expected a whole number, {least} to {most}")
        return value

    def number(self, name: str, default: float, least: float, most: float) -> float:
        """Take a number within bounds."""
        value = self._take(name, default)
        try:
            found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            found = math.nan
        if not least <= found <= most:
            raise InputError(f"{name}={shown(value)} is out of range; expected a number, {least:g} to {most:g}")
        return found

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        """Take one of some names."""
        value = self._take(name, default)
        if value not in choices:
            raise InputError(f"{name}={shown(value)} is not known; expected one of {', '.join(choices)}")
        return str(value)

    def pairs(self, name: str, most: int) -> list[tuple[str, str]]:
        """Take pairs of words, given as a list of lists."""
        value = self._take(name, None)
        if not isinstance(value, list) or len(value) > most:
            raise InputError(f"{name} should be a list of at most {most:,} pairs of words")
        return [_pair(name, each) for each in value]


def _pair(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{name} holds {shown(value)}, expected pairs of words: [source, target]")
    src, tgt = (_checked_text(name, word) for word in value)
    if not src or not tgt:
        raise InputError(f"{name} holds {shown(value)}, expected words that are not empty")
    return src, tgt


def _checked_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise InputError(f"{name}={shown(value)} should be a text of at most {MAX_TEXT} characters")
    return value


_MAX_ALIGNMENTS = 1000
_MAX_ROWS = 200
_MAX_MARKS = 20_000
_NONE = "none"
ALL, HALF = "all", "half"
PARTS = (ALL, HALF)
"""Words of the lexicon whose pairs are accepted at once: all, or every second one, so that the others can score."""


def _alignment(session: Session, arguments: Arguments, name: str = "a") -> tuple[int, Workspace]:
    number = arguments.whole(name, 0, 0, _MAX_ALIGNMENTS)
    return number, session.get(number)


def _side(arguments: Arguments) -> Side:
    return "src" if arguments.choice("side", SIDES, "src") == "src" else "tgt"


def _overview(session: Session, arguments: Arguments) -> Json:
    arguments.finish()
    return views.overview(session.workspaces)


def _progress(session: Session, arguments: Arguments) -> Json:
    """Return the progress of the work in the background."""
    number, workspace = _alignment(session, arguments)
    arguments.finish()
    realignment = session.realignment
    return {
        "work": session.task(number).shown(),
        "table": workspace.pairs is not None,
        "map": workspace.map is not None,
        "realigning": None if realignment is None else realignment.shown(),
    }


def _complete(session: Session, arguments: Arguments) -> Json:
    _, workspace = _alignment(session, arguments)
    side, start, n = _side(arguments), arguments.text("q"), arguments.whole("n", 8, 1, 50)
    arguments.finish()
    return views.completion(workspace, side, start, n)


def _word(session: Session, arguments: Arguments) -> Json:
    _, workspace = _alignment(session, arguments)
    side, word, k = _side(arguments), arguments.text("w"), arguments.whole("k", 10, 1, 50)
    arguments.finish()
    return views.word(workspace, side, word, k)


def _table_query(arguments: Arguments, most: int) -> TableQuery:
    return TableQuery(
        sort=arguments.choice("sort", views.SORTS, "frequency"),
        descending=arguments.choice("dir", ("asc", "desc"), "asc") == "desc",
        text=arguments.text("q", ""),
        least=arguments.number("least", 0.0, 0.0, 1.0),
        most=arguments.number("most", 1.0, 0.0, 1.0),
        first=arguments.whole("first", 1, 1, views.MAX_RANK),
        last=arguments.whole("last", views.MAX_RANK, 1, views.MAX_RANK),
        right=arguments.choice("right", views.RIGHTS, "any"),
        mutual=arguments.choice("mutual", views.MUTUALS, "any"),
        mark=arguments.choice("mark", views.MARKED, "any"),
        suspect=arguments.choice("suspect", views.SUSPECTS, "any"),
        top=arguments.whole("top", 0, 0, views.MAX_RANK),
        column=arguments.text("column", ""),
        value=arguments.text("value", ""),
        offset=arguments.whole("offset", 0, 0, 10**9),
        limit=arguments.whole("limit", 50, 1, most),
    )


def _pairs_of(session: Session, number: int) -> PairTable | None:
    """Return the pairs of an alignment, or None if they are not computed yet."""
    task = session.task(number)
    pairs = session.pairs(number)
    if pairs is None and task.state == FAILED:
        raise InputError(f"the pairs of this alignment could not be computed: {task.message}")
    return pairs


def _table(session: Session, arguments: Arguments) -> Json:
    number, workspace = _alignment(session, arguments)
    query = _table_query(arguments, _MAX_ROWS)
    arguments.finish()
    pairs = _pairs_of(session, number)
    if pairs is None:
        return {"ready": False, "work": session.task(number).shown()}
    return {"ready": True, **views.table(workspace, pairs, query)}


def _points(session: Session, arguments: Arguments) -> Json:
    number, workspace = _alignment(session, arguments)
    arguments.finish()
    pairs, positions = _pairs_of(session, number), workspace.map
    if pairs is None or positions is None:
        task = session.task(number)
        if task.state == FAILED:
            raise InputError(f"the map could not be computed: {task.message}")
        return {"ready": False, "work": task.shown()}
    return {"ready": True, **views.points(workspace, pairs, positions)}


def _about(session: Session, arguments: Arguments) -> Json:
    _, workspace = _alignment(session, arguments)
    arguments.finish()
    return views.about(workspace)


def _compare(session: Session, arguments: Arguments) -> Json:
    (first, a), (second, b) = _alignment(session, arguments), _alignment(session, arguments, "b")
    query = CompareQuery(
        shown=arguments.choice("shown", views.SHOWN, "different"),
        text=arguments.text("q", ""),
        offset=arguments.whole("offset", 0, 0, 10**9),
        limit=arguments.whole("limit", 50, 1, _MAX_ROWS),
    )
    arguments.finish()
    found = _pairs_of(session, first), _pairs_of(session, second)
    if found[0] is None or found[1] is None:
        return {"ready": False, "work": session.task(second if found[1] is None else first).shown()}
    return {"ready": True, **views.comparison(a, b, (found[0], found[1]), query)}


# --------------------------------------------------------------------------- changes


def _mark(session: Session, arguments: Arguments) -> Json:
    """Mark pairs as right or wrong, or remove their marks."""
    _, workspace = _alignment(session, arguments)
    pairs, mark = arguments.pairs("pairs", _MAX_MARKS), arguments.choice("mark", (*MARKS, _NONE))
    arguments.finish()
    src, tgt = (workspace.alignment.side(side).space for side in SIDES)
    for pair in pairs:
        if pair[0] not in src or pair[1] not in tgt:
            raise InputError(f"received the pair {pair!r}, expected a source word and a target word of this alignment")
    return _marked(workspace, workspace.corrections.set(pairs, None if mark == _NONE else mark))


def _lexicon_marks(session: Session, arguments: Arguments) -> Json:
    """Return how many pairs `mark-by-lexicon` would accept, by its choices."""
    _, workspace = _alignment(session, arguments)
    arguments.finish()
    return {name: len(_of_lexicon(workspace, name)) for name in PARTS}


def _mark_by_lexicon(session: Session, arguments: Arguments) -> Json:
    """Mark the pairs of the lexicon that are in both vocabularies as right: of all words, or of every second one."""
    _, workspace = _alignment(session, arguments)
    part = arguments.choice("part", PARTS)
    arguments.finish()
    return _marked(workspace, workspace.corrections.set(_of_lexicon(workspace, part), RIGHT))


def _of_lexicon(workspace: Workspace, part: str) -> list[tuple[str, str]]:
    """Return the pairs of the lexicon that are not marked yet, without words that have an accepted answer."""
    if workspace.lexicon is None:
        raise InputError("no lexicon was given: start with `qwp explore DIR --lexicon FILE`")
    src, tgt = (workspace.alignment.side(side).space for side in SIDES)
    pairs = [pair for pair in workspace.lexicon.pairs if pair[0] in src and pair[1] in tgt]
    words = list(dict.fromkeys(word for word, _ in pairs))
    wanted = set(words if part == ALL else words[::2]).difference(workspace.pins("src"))
    # The last accepted answer of a word is pinned: it should be the first of the lexicon.
    return [pair for pair in reversed(pairs) if pair[0] in wanted and workspace.corrections.get(*pair) is None]


def _clear(session: Session, arguments: Arguments) -> Json:
    """Remove all marks."""
    _, workspace = _alignment(session, arguments)
    arguments.finish()
    return _marked(workspace, workspace.corrections.clear())


def _undo(session: Session, arguments: Arguments) -> Json:
    """Take back the last change of the marks."""
    _, workspace = _alignment(session, arguments)
    arguments.finish()
    return _marked(workspace, workspace.corrections.undo())


def _marked(workspace: Workspace, written: bool) -> Json:
    marks = {**workspace.corrections.counts(), "undoable": workspace.corrections.undoable}
    return {"marks": marks, "written": written, "folder": str(workspace.folder)}


def _realign(session: Session, arguments: Arguments) -> Json:
    number, _ = _alignment(session, arguments)
    arguments.finish()
    return session.realign(number).shown()


def _stop(session: Session, arguments: Arguments) -> Json:
    arguments.finish()
    session.stop_realigning()
    return {}


# --------------------------------------------------------------------------- downloads


def _pairs_file(session: Session, arguments: Arguments) -> tuple[str, str]:
    number, workspace = _alignment(session, arguments)
    query = _table_query(arguments, _MAX_ROWS)
    arguments.finish()
    pairs = _pairs_of(session, number)
    if pairs is None:
        raise InputError("the pairs are still being computed: wait a moment")
    return _file_name(workspace, "pairs.tsv"), views.pairs_tsv(workspace, pairs, query)


def _corrections_file(session: Session, arguments: Arguments) -> tuple[str, str]:
    _, workspace = _alignment(session, arguments)
    mark = arguments.choice("mark", MARKS, RIGHT)
    arguments.finish()
    lines = ["\t".join(pair) for pair in workspace.corrections.pairs(mark)]
    return _file_name(workspace, "corrections.tsv"), "".join(f"{line}\n" for line in lines)


def _file_name(workspace: Workspace, kind: str) -> str:
    """Return a file name of letters, digits and dashes, because it is part of an HTTP header."""
    stem = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(workspace.name).name)[:60]
    return f"{stem.strip('-') or 'qwp'}-{kind}"


VIEWS: dict[str, Callable[[Session, Arguments], Json]] = {
    "api/overview": _overview,
    "api/progress": _progress,
    "api/complete": _complete,
    "api/word": _word,
    "api/table": _table,
    "api/points": _points,
    "api/about": _about,
    "api/compare": _compare,
    "api/lexicon-marks": _lexicon_marks,
}
CHANGES: dict[str, Callable[[Session, Arguments], Json]] = {
    "api/mark": _mark,
    "api/mark-by-lexicon": _mark_by_lexicon,
    "api/clear": _clear,
    "api/undo": _undo,
    "api/realign": _realign,
    "api/stop": _stop,
}
DOWNLOADS: dict[str, Callable[[Session, Arguments], tuple[str, str]]] = {
    "download/pairs.tsv": _pairs_file,
    "download/corrections.tsv": _corrections_file,
}
