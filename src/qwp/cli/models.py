"""fastText models as `qwp export` writes them: all input vectors in the common space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from qwp.cli import console
from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.provenance import InputRecord
from qwp.spaces.sides import Side

_FORMAT = "fasttext"


def asked_for(alignment: Alignment, side: Side, source: Path | None, out: Path, format: str | None) -> Path | None:
    """The model that is to be written in the common space: that of `source`, or the one that was aligned.

    None where another format is asked for, or the vectors of the side are no model.
    """
    from qwp.spaces import io

    if format not in (None, _FORMAT) or (format is None and out.suffix != ".bin"):
        return None
    if source is not None:
        return source if io.sniff(source) == _FORMAT else None
    record: InputRecord = getattr(alignment.provenance, side)
    return _aligned(record, side) if (record.reading or {}).get("format") == _FORMAT else None


def _aligned(record: InputRecord, side: Side) -> Path:
    """The model that was aligned, if it is still the same."""
    from qwp.spaces import io

    path = Path(record.path or "")
    ways_out = f"give --{side} FILE for a model of your choice, or --format word2vec-binary to write the words alone"
    if not path.is_file():
        raise InputError(f"{path}, the fastText model that was aligned, is not there: {ways_out}")
    try:
        same = io.load(path, max_vocab=None if record.complete else record.n_words, **(record.reading or {}))
    except InputError as error:
        raise InputError(f"{path} cannot be read as it was when it was aligned ({error}): {ways_out}") from error
    if same.sha256() != record.sha256:
        raise InputError(f"{path} is no longer the fastText model that was aligned: {ways_out}")
    return path


def write(alignment: Alignment, side: Side, model: Path, out: Path, *, json: bool) -> dict[str, Any]:
    """Write a model in the common space. Returns what was written as plain JSON types."""
    from qwp.showing.bar import words_bar
    from qwp.spaces.io import fasttext

    aligned = alignment.side(side)
    dim = alignment.src_map.shape[1]
    turn = np.eye(dim) if aligned.map is None else aligned.map
    with words_bar(quiet=json) as bar:
        task = bar.add_task(f"writing {out}", total=None)
        words = fasttext.write_mapped(model, out, turn, lambda done: bar.advance(task, done))
    if not json:
        console.say(f"a fastText model of {words:,} words, {dim} dimensions written to {out}")
    return {"out": str(out), "words": words, "dim": dim, "from_file": str(model), "warnings": []}
