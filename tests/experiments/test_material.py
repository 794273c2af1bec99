"""What cells compute with: each file is read once, and what reading warned of belongs to every cell."""

from __future__ import annotations

import logging
from pathlib import Path

from qwp.experiments.material import Source, add_warnings, read_all, warnings_kept, warnings_of


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
