from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.spaces.lexicon import Lexicon, PairReader


def put(tmp_path: Path, content: str | bytes, name: str = "x.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_muse(tmp_path: Path) -> None:
    found = Lexicon.load(put(tmp_path, "cat gato\ncat gata\ndog  perro \ncat\tgato\n"))
    assert found.pairs == (("cat", "gato"), ("cat", "gata"), ("dog", "perro"))
    assert (found.skipped, found.duplicates, found.source) == (0, 1, str(tmp_path / "x.txt"))
    assert found.targets == {"cat": ("gato", "gata"), "dog": ("perro",)}
    assert list(found) == list(found.pairs)
    assert len(found) == 3


def test_xling_keeps_blanks_inside(tmp_path: Path) -> None:
    path = put(tmp_path, "ice cream\thelado\r\ncat\tel gato\r\n")
    assert Lexicon.load(path).pairs == (("ice cream", "helado"), ("cat", "el gato"))
    assert Lexicon.load(path, format="xling").pairs == Lexicon.load(path).pairs


def test_csv(tmp_path: Path) -> None:
    content = 'Source,Target,note\n"ice cream","hela""do",x\n"a,b",c\nsource,origen\n'
    found = Lexicon.load(put(tmp_path, content, "x.csv"))
    assert found.pairs == (("ice cream", 'hela"do'), ("a,b", "c"), ("source", "origen"))
    assert found.skipped == 0


def test_a_csv_without_a_header_keeps_its_first_row(tmp_path: Path) -> None:
    assert Lexicon.load(put(tmp_path, "word,target\n", "x.csv")).pairs == (("word", "target"),)


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        ("a b\nc d\n", (("a", "b"), ("c", "d"))),
        ("a\tb\nc x\td\n", (("a", "b"), ("c x", "d"))),
        ("a,b\nc,d\n", (("a", "b"), ("c", "d"))),
        ("\ufeffa b\n", (("a", "b"),)),
    ],
)
def test_the_format_is_detected(tmp_path: Path, content: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert Lexicon.load(put(tmp_path, content)).pairs == pairs


def test_other_blanks_are_part_of_words(tmp_path: Path) -> None:
    path = put(tmp_path, "a\u00a0b c\u2028d\n\u0085 e\n")
    assert Lexicon.load(path).pairs == (("a\u00a0b", "c\u2028d"), ("\u0085", "e"))


def test_invalid_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    found = Lexicon.load(put(tmp_path, b"a b\none\n\nx y z\ncaf\xe9 b\nc d"))
    assert found.pairs == (("a", "b"), ("c", "d"))
    assert found.skipped == 4
    assert found.skipped_lines == (
        "line 2: holds 1 fields, expected 2",
        "line 3: holds 0 fields, expected 2",
        "line 4: holds 3 fields, expected 2",
        "line 5: is not UTF-8 text",
    )
    empty = Lexicon.load(put(tmp_path, "a\tb\nc\t\nd\te\n"), format="xling")
    assert empty.skipped_lines == ("line 2: has an empty field, expected 2 words",)
    many = Lexicon.load(put(tmp_path, "a b\n" + "odd\n" * 50))
    assert (many.skipped, len(many.skipped_lines)) == (50, 20)


def test_case(tmp_path: Path) -> None:
    path = put(tmp_path, "Cat GATO\ncat gato\n")
    assert Lexicon.load(path).pairs == (("Cat", "GATO"), ("cat", "gato"))
    project = Lexicon.load(path, case="lower")
    assert (project.pairs, project.duplicates) == ((("cat", "gato"),), 1)


def test_gzip(tmp_path: Path) -> None:
    assert Lexicon.load(put(tmp_path, gzip.compress(b"a,b c\n"), "x.csv.gz")).pairs == (("a", "b c"),)


def test_unusable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no usable pair .* \(2 lines skipped; line 1: holds 1 fields"):
        Lexicon.load(put(tmp_path, "one\ntwo\n"))
    with pytest.raises(InputError, match="does not exist"):
        Lexicon.load(tmp_path / "no.txt")
    with pytest.raises(InputError, match="is empty"):
        Lexicon.load(put(tmp_path, ""))
    with pytest.raises(InputError, match="format='tsv', expected one of auto, muse, xling, csv"):
        Lexicon.load(put(tmp_path, "a b\n"), format="tsv")
    with pytest.raises(InputError, match="case='upper'"):
        Lexicon.load(put(tmp_path, "a b\n"), case="upper")


@pytest.mark.parametrize("pair", [("a",), ("a", ""), ("a", "b", "c"), "ab", ("a", 3)])
def test_invalid_pairs_are_refused(pair: object) -> None:
    with pytest.raises(InputError, match="expected two non-empty words"):
        Lexicon((pair,))  # type: ignore[arg-type]


def test_coverage() -> None:
    lexicon = Lexicon((("a", "x"), ("a", "y"), ("b", "x"), ("c", "z"), ("d", "x")))
    found = lexicon.coverage({"a", "b", "c"}, {"x", "y"})
    assert found.to_dict() == {
        "pairs": 5,
        "covered_pairs": 3,
        "source_words": 4,
        "covered_source_words": 2,
        "share": 0.5,
    }
    assert Lexicon(()).coverage(set(), set()).share == 0.0


def test_reverse() -> None:
    lexicon = Lexicon((("a", "x"), ("b", "x")))
    assert lexicon.reverse().pairs == (("x", "a"), ("x", "b"))
    assert lexicon.reverse().targets == {"x": ("a", "b")}
    assert lexicon.reverse().reverse() == lexicon


entry = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda word: word.strip(" ") == word
)


@pytest.mark.parametrize("format", ["xling", "csv"])
@settings(max_examples=40)
@given(st.lists(st.tuples(entry, entry), min_size=1, max_size=8))
def test_saved_pairs_are_restored(
    tmp_path_factory: pytest.TempPathFactory, format: str, pairs: list[tuple[str, str]]
) -> None:
    lexicon = Lexicon((("first", "pair"), *pairs))
    path = tmp_path_factory.mktemp("lexicon") / ("x.csv" if format == "csv" else "x.tsv")
    lexicon.save(path)
    found = Lexicon.load(path, format=format)
    assert found.pairs == lexicon.pairs
    assert found.skipped == 0


def test_saving_is_all_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a tab or a line break"):
        Lexicon((("a", "b"), ("c\t", "d"))).save(tmp_path / "x.tsv")
    assert list(tmp_path.iterdir()) == []


def test_a_line_that_csv_refuses_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "gold.csv"
    path.write_text(f"house,casa\n{'x' * 200_000},y\n", encoding="utf-8")
    lexicon = Lexicon.load(path)
    assert lexicon.pairs == (("house", "casa"),)
    assert lexicon.skipped == 1


odd_entry = st.one_of(
    st.sampled_from(
        ["src", "tgt", "Source", "\ufeffa", "\ufeff", "a\r", "\r", "a\0", '"', '"a"', "a,b", " a", "a\tb", "\x85", "😀"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)


@pytest.mark.parametrize("name", ["x.tsv", "x.csv", "x.txt.gz", "x.csv.gz"])
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(odd_entry, odd_entry), min_size=1, max_size=5))
@example([("src", "tgt"), ("a", "b")])
@example([("\ufeffa", "b")])
@example([("a\rb", "c")])
def test_saved_pairs_are_restored_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, pairs: list[tuple[str, str]]
) -> None:
    lexicon = Lexicon(tuple(pairs))
    path = tmp_path_factory.mktemp("lexicon") / name
    try:
        lexicon.save(path)
    except InputError:
        assert not path.exists()
        return
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    found = Lexicon.load(path)
    assert found.pairs == lexicon.pairs
    assert (found.skipped, found.duplicates) == (0, 0)


def test_lines_longer_than_a_block(tmp_path: Path) -> None:
    pairs = [(f"s{i}", "t" * (1 + 997 * i % 60_000)) for i in range(100)]
    text = "".join(f"{source} {target}\n" for source, target in pairs)
    assert len(text) > 2_000_000
    assert Lexicon.load(put(tmp_path, b"\xef\xbb\xbf" + text.encode())).pairs == tuple(pairs)


def test_an_endless_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2 of .* is longer than 1048576 bytes"):
        Lexicon.load(put(tmp_path, "a b\n" + "x" * 3_000_000))


def test_words_that_are_too_long_are_skipped(tmp_path: Path) -> None:
    found = Lexicon.load(put(tmp_path, "a b\n" + "x" * 70_000 + " y\n"))
    assert found.pairs == (("a", "b"),)
    assert found.skipped_lines == ("line 2: has a word of more than 65535 bytes, expected less",)
    with pytest.raises(InputError, match="more than 65535 bytes"):
        Lexicon((("x" * 70_000, "y"),)).save(tmp_path / "y.tsv")


def test_repeated_pairs_are_counted_and_use_no_memory(tmp_path: Path) -> None:
    found = Lexicon.load(put(tmp_path, "a b\n" * 3000 + "c d\n"))
    assert (found.pairs, found.duplicates) == ((("a", "b"), ("c", "d")), 2999)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": 3}, "received format=3, expected one of auto"),
        ({"format": None}, "received format=None"),
        ({"case": None}, "received case=None, expected 'keep' or 'lower'"),
        ({"case": ["lower"]}, "received case="),
    ],
)
def test_options_of_a_wrong_type_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Lexicon.load(put(tmp_path, "a b\n"), **options)


def test_other_text_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is UTF-16 text"):
        Lexicon.load(put(tmp_path, "a b\nc d\n".encode("utf-16")))
    with pytest.raises(InputError, match="carriage returns alone"):
        Lexicon.load(put(tmp_path, b"a b\rc d\r"))
    with pytest.raises(InputError, match="damaged or truncated gzip"):
        Lexicon.load(put(tmp_path, gzip.compress(b"a b\n" * 100)[:-9]))


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(InputError, match="half of a surrogate pair"):
        Lexicon((("a", "b"), ("\ud800", "b")))


@pytest.mark.parametrize("pairs", [((5,),), (None,), ((b"a", b"b"),)])
def test_other_objects_are_not_pairs(pairs: Any) -> None:
    with pytest.raises(InputError, match="expected two non-empty words"):
        Lexicon(pairs)


# --------------------------------------------------------------------------- accepted objects


PAIRS = (("house", "casa"), ("big", "grande"), ("big", "gran"))


class Frame:
    """The attributes of a DataFrame that qwp uses."""

    def to_numpy(self) -> Any:
        return np.array(PAIRS, dtype=object)


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        iter(PAIRS),
        np.array(PAIRS),
        {"house": "casa", "big": ["grande", "gran"]},
        {"house": ("casa",), "big": np.array(["grande", "gran"])},
        Frame(),
    ],
)
def test_a_lexicon_of_pairs_or_of_a_dict(given: Any) -> None:
    assert Lexicon.of(given).pairs == PAIRS


def test_a_lexicon_of_a_lexicon_or_of_a_path(tmp_path: Path) -> None:
    lexicon = Lexicon(PAIRS)
    assert Lexicon.of(lexicon) is lexicon
    path = put(tmp_path, "house casa\n")
    assert Lexicon.of(path) == Lexicon.of(str(path)) == Lexicon.load(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (5, r"received 5 \(int\) as a lexicon, expected a Lexicon, the path of a file, a list of pairs of words, or a"),
        (b"x", r"received b'x' \(bytes\) as a lexicon"),
        ({"house": 5}, r"received 5 \(int\) as the translation of 'house', expected a word or a list of words"),
        ({"house": [5]}, r"received the pair \('house', 5\), expected two non-empty words"),
        (["house casa"], "received the pair 'house casa', expected two non-empty words"),
        ([], "received a lexicon without pairs, expected at least one"),
        ({"house": []}, "received a lexicon without pairs"),
        ("nowhere.txt", "nowhere.txt"),
    ],
)
def test_invalid_lexicons_are_explained(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Lexicon.of(given)


def test_repr_is_one_line(tmp_path: Path) -> None:
    assert repr(Lexicon(PAIRS)) == "Lexicon(3 pairs: 'house' -> 'casa', ...)"
    assert repr(Lexicon((("a\n", "b"),))) == r"Lexicon(1 pairs: 'a\n' -> 'b')"
    assert repr(Lexicon(())) == "Lexicon(0 pairs)"
    many = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(1500)), source="en-es.txt")
    assert repr(many) == "Lexicon(1,500 pairs of 'en-es.txt': 's0' -> 't0', ...)"


def test_the_number_of_pairs_is_limited() -> None:
    reader = PairReader("muse", lower=False, max_pairs=1)
    reader.add(1, b"house casa", last=False)
    assert not reader.too_many
    reader.add(2, b"dog perro", last=False)
    assert reader.too_many


def test_a_notebook_shows_the_first_words() -> None:
    shown = Lexicon((("house", "casa"), ("house", "<hogar>"), ("water", "agua")))._repr_html_()
    assert "casa, &lt;hogar&gt;" in shown
    assert "3 pairs" in shown
