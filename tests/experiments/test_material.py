"""What cells compute with: each file is read once, and what reading warned of belongs to every cell."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from qwp.experiments.material import Read, Shelf, Source, add_warnings, read_all, warnings_kept, warnings_of
from qwp.spaces.embeddings import Embeddings


def test_warnings_of_a_file_are_those_of_all_who_use_it(folder: Path) -> None:
    (folder / "en.vec").write_text("5 2\n" + "".join(f"s{i} {i} 1\n" for i in range(4)))
    (folder / "en-es.txt").write_text("s1 t1\nalone\n")
    lexicons = {"gold": Source(folder / "en-es.txt"), "train": Source(folder / "en-es.txt")}
    first, second = (read_all({"src": Source.vectors(folder / "en.vec"), **lexicons}) for _ in range(2))
    assert first["src"].content is second["src"].content
    vectors, lexicon = warnings_of(first)  # that of the dictionary once, although it is there twice
    assert warnings_of(second) == [vectors, lexicon]
    assert "en.vec" in vectors
    assert "1 lines skipped" in lexicon


def test_vectors_are_cut(folder: Path) -> None:
    assert len(Source.vectors(folder / "en.vec", max_vocab=10).read().content) == 10


def test_warnings_are_kept_once_and_not_without_end() -> None:
    with warnings_kept() as texts:
        logging.getLogger("qwp.some").warning("number %d", 1)
        logging.getLogger("qwp.some").warning("number %d", 1)
        logging.getLogger("qwp.some").info("nothing")
    logging.getLogger("qwp.some").warning("later")
    assert texts == ["number 1"]
    add_warnings(texts, [str(i) for i in range(100)])
    assert len(texts) == 20


def test_as_much_is_kept_as_there_is_room_for() -> None:
    reads: list[str] = []

    def take(shelf: Shelf, name: str) -> Read:
        def read() -> Read:
            reads.append(name)
            return Read(Embeddings(["w"], np.ones((1, 100), np.float32)))  # 400 bytes

        return shelf.take(Source.vectors(Path(name)), read)

    for most, then, again in ((10_000, "cdefab", ""), (2000, "cdefab", "ab"), (0, "abcdef", "abcdef")):
        shelf = Shelf(most)
        for name in "abcdef":
            take(shelf, name)
        reads.clear()
        for name in then:
            take(shelf, name)
        # Four at least, whatever they take.
        assert "".join(sorted(reads)) == again
