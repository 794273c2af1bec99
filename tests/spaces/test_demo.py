"""The packaged vectors."""

from __future__ import annotations

from qwp.spaces.demo import load_demo


def test_the_packaged_vectors_and_their_lexicon() -> None:
    src, tgt, lexicon = load_demo()
    assert [space.name for space in (src, tgt)] == ["en", "es"]
    assert src.report is not None
    assert src.report.path == "en.npz", "the bare name, wherever the package is"
    assert src.dim == tgt.dim
    assert {"house", "water"} <= set(src.words)
    assert lexicon.coverage(src, tgt).share > 0.9
