"""The page about migration is true: all of its blocks run, in order, on small files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import qwp
from tests.documents import blocks
from tests.migration.problems import encoders
from tools.project import ROOT


def test_every_block_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = encoders(500)
    monkeypatch.chdir(tmp_path)
    io.save(Embeddings(texts.ids, texts.old), "old.npz")
    io.save(Embeddings(texts.ids[:300], texts.new[:300]), "new.npz")
    np.save("query.npy", texts.new[7])
    values: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / "migrate.md"):
        if block.language == "python":
            exec(compile(block.text, block.where, "exec"), values)
        else:
            for line in block.text.splitlines():
                ran = qwp(*shlex.split(line)[1:])
                assert ran.code == 0, f"{line}: {ran.err}"
    assert texts.recall(io.load("converted.npz").vectors, texts.new) > 0.8
    assert int((texts.old @ values["query"]).argmax()) == 7
    assert values["converted"].shape == (500, 20)
