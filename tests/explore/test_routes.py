from __future__ import annotations

import pytest

from qwp.errors import InputError
from qwp.explore import routes
from qwp.explore.routes import Arguments
from qwp.explore.session import Session
from qwp.explore.views import Json
from qwp.explore.workspace import Workspace
from tests.explore.conftest import ignore_progress


@pytest.fixture
def session(workspace: Workspace) -> Session:
    """A session without threads: the tests compute what they need."""
    return Session([workspace])


def view(session: Session, name: str, **asked: object) -> Json:
    return routes.VIEWS[f"api/{name}"](session, Arguments({key: str(value) for key, value in asked.items()}))


def change(session: Session, name: str, **asked: object) -> Json:
    return routes.CHANGES[f"api/{name}"](session, Arguments(asked))


def test_overview_and_progress(session: Session) -> None:
    about = view(session, "overview")["alignments"][0]
    assert about["words"] == {"src": 400, "tgt": 400}
    assert about["lexicon"] == 4
    assert view(session, "progress")["table"] is False


def test_views_that_are_not_ready(session: Session) -> None:
    assert view(session, "table")["ready"] is False
    assert view(session, "points")["ready"] is False
    assert view(session, "compare", a=0, b=0)["ready"] is False
    with pytest.raises(InputError, match="still being computed"):
        routes.DOWNLOADS["download/pairs.tsv"](session, Arguments({}))
    session.task(0).state, session.task(0).message = "failed", "no memory"
    with pytest.raises(InputError, match="could not be computed: no memory"):
        view(session, "table")


def test_views_when_ready(session: Session) -> None:
    session.get(0).prepare(ignore_progress)
    assert view(session, "table", limit=2)["total"] == 400
    assert view(session, "points")["ready"] is True
    assert view(session, "compare", a=0, b=0)["words"] == 400
    assert view(session, "complete", q="s1")["words"]
    assert view(session, "word", w="s1")["known"]
    assert view(session, "about")["curves"]
    name, text = routes.DOWNLOADS["download/pairs.tsv"](session, Arguments({}))
    assert name == "planted-pairs.tsv"
    assert len(text.splitlines()) == 401


def test_invalid_arguments_raise(session: Session) -> None:
    cases: list[tuple[str, dict[str, object]]] = [
        ("table", {"sort": "nothing"}),
        ("table", {"limit": 201}),
        ("table", {"least": 2}),
        ("table", {"first": 0}),
        ("table", {"strange": 1}),
        ("word", {"w": "s1", "side": "both"}),
        ("word", {}),
        ("word", {"w": "s1", "a": 7}),
        ("complete", {"q": "a" * 501}),
    ]
    for name, asked in cases:
        with pytest.raises(InputError):
            view(session, name, **asked)


def test_pairs_are_marked(session: Session) -> None:
    answer = change(session, "mark", pairs=[["s0", "t0"], ["s1", "t9"]], mark="right")
    assert answer["marks"] == {"right": 2, "wrong": 0, "undoable": 1}
    assert answer["written"] is True
    change(session, "mark", pairs=[["s1", "t9"]], mark="none")
    _, text = routes.DOWNLOADS["download/corrections.tsv"](session, Arguments({}))
    assert text == "s0\tt0\n"
    with pytest.raises(InputError, match="expected a source word and a target word of this alignment"):
        change(session, "mark", pairs=[["t0", "s0"]], mark="right")
    with pytest.raises(InputError, match="mark='perhaps' is not known"):
        change(session, "mark", pairs=[["s0", "t0"]], mark="perhaps")


def test_pairs_of_the_lexicon_are_marked(session: Session) -> None:
    assert view(session, "lexicon-marks") == {"all": 3, "half": 1}  # the fourth is not in the vectors
    change(session, "mark", pairs=[["s0", "t9"]], mark="right")
    assert change(session, "mark-by-lexicon", part="half")["marks"]["right"] == 1  # s0 has an answer of the user
    answer = change(session, "mark-by-lexicon", part="all")
    assert answer["marks"] == {"right": 3, "wrong": 0, "undoable": 3}
    assert session.get(0).pins("src") == {"s0": "t9", "s1": "t1"}
    assert change(session, "undo")["marks"]["right"] == 1
    assert change(session, "clear")["marks"]["right"] == 0
    assert change(session, "undo")["marks"]["right"] == 1
    session.get(0).lexicon = None
    with pytest.raises(InputError, match="no lexicon was given"):
        change(session, "mark-by-lexicon", part="all")


def test_names_of_downloads_are_harmless(session: Session) -> None:
    session.get(0).name = 'a"\r\nSet-Cookie: é/..'
    name, _ = routes.DOWNLOADS["download/corrections.tsv"](session, Arguments({}))
    assert name == "--corrections.tsv" or name.replace("-", "").replace(".", "").isalnum()
    assert not set('"\r\n/') & set(name)


def test_arguments_of_a_query() -> None:
    asked = Arguments.of_query("a=3&q=caf%C3%A9&least=0.5&side=tgt")
    assert asked.whole("a", 0, 0, 9) == 3
    assert asked.text("q") == "café"
    assert asked.number("least", 0.0, 0.0, 1.0) == 0.5
    assert asked.choice("side", ("src", "tgt")) == "tgt"
    assert asked.whole("k", 10, 1, 50) == 10
    asked.finish()


def test_arguments_out_of_bounds_raise() -> None:
    cases: list[tuple[str, str]] = [
        ("a=-1", "a='-1' is out of range; expected a whole number, 0 to 9"),
        ("a=10", "a=10 is out of range"),
        ("a=1.5", "a='1.5' is out of range"),
        ("a=²", "a='²' is out of range"),
        ("a=" + "9" * 30, "is out of range"),
        ("a=1&a=2", "received a name twice"),
        ("a=%FF", "cannot be read"),
        ("a=1&" + "&".join(f"x{i}=1" for i in range(40)), "cannot be read"),
        ("q=" + "a" * 5000, "received a query of 5,002 characters, expected at most 4,096"),
    ]
    for query, message in cases:
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            Arguments.of_query(query).whole("a", 0, 0, 9)


def test_arguments_of_other_types_raise() -> None:
    with pytest.raises(InputError, match="q is missing"):
        Arguments({}).text("q")
    with pytest.raises(InputError, match="should be a text of at most 500 characters"):
        Arguments({"q": "a" * 501}).text("q")
    with pytest.raises(InputError, match="should be a text"):
        Arguments({"q": 1}).text("q")
    with pytest.raises(InputError, match="expected a number, 0 to 1"):
        Arguments({"x": "nan"}).number("x", 0.0, 0.0, 1.0)
    with pytest.raises(InputError, match="expected a number"):
        Arguments({"x": True}).number("x", 0.0, 0.0, 1.0)
    with pytest.raises(InputError, match="is not known; expected one of a, b"):
        Arguments({"x": ["a"]}).choice("x", ("a", "b"))
    with pytest.raises(InputError, match="received 'x', which this address does not take"):
        Arguments({"x": 1}).finish()


def test_bodies_are_one_json_object() -> None:
    cases: list[bytes] = [b"", b"[]", b"\xff", b"{", b"1", b"[" * 100_000]
    for body in cases:
        with pytest.raises(InputError, match="expected one"):
            Arguments.of_body(body)


def test_pairs_are_lists_of_two_words() -> None:
    cases: list[object] = [None, "ab", [["a"]], [["a", 1]], [["a", ""]], [["a", "b", "c"]], [["a", "b"]] * 3]
    for pairs in cases:
        with pytest.raises(InputError):
            Arguments({"pairs": pairs}).pairs("pairs", 2)
        assert Arguments({"pairs": [["a", "b"]]}).pairs("pairs", 2) == [("a", "b")]
