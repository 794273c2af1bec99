"""Saved alignments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.results.provenance import InputRecord
from qwp.spaces.embeddings import Embeddings

SCHEMA = 1
INDEX_FILE, TENSOR_FILE = "alignment.json", "alignment.safetensors"


def read_index(folder: Path) -> dict[str, Any]:
    """The JSON part of a saved alignment."""
    path = folder / INDEX_FILE
    if not path.exists():
        raise InputError(f"{folder} holds no {INDEX_FILE}; expected a folder written by `qwp align --out`")
    try:
        about: dict[str, Any] = json.loads(path.read_text("utf-8"))
        schema = about["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}): align again") from error
    if schema != SCHEMA:
        raise InputError(
            f"{path} has schema {schema}, this version of qwp reads {SCHEMA}: install the matching version"
        )
    return about


def _check_vectors(folder: Path, space: Embeddings, record: InputRecord, side: str) -> None:
    if (len(space), space.dim) != (record.n_words, record.dim):
        raise InputError(
            f"{folder / side}.safetensors holds {len(space)} x {space.dim} vectors, the alignment was made with "
            f"{record.n_words} x {record.dim}: align again"
        )
