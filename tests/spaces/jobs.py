"""Jobs for readers that run in the process of the test."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from qwp.spaces.child import Numbers, ReadingJob, get_reader


def job(
    path: Path, kind: str, part: str | None = None, rows: int = 1000, memory: int = 1 << 30, seconds: int = 60
) -> ReadingJob:
    """Return a job for a file. The reader closes the descriptor."""
    descriptor = os.open(path, os.O_RDONLY)
    return ReadingJob(kind, str(path), str(path), descriptor, path.stat().st_size, part, rows, memory, seconds)


def items(path: Path, kind: str, part: str | None = None, rows: int = 1000) -> tuple[list[str | None] | None, Numbers]:
    """Read all words and vectors of a file in this process."""
    batches = list(get_reader(kind)(job(path, kind, part, rows))[1])
    named = [words for words, _ in batches if words is not None]
    vectors = np.concatenate([vectors for _, vectors in batches])
    return [word for words in named for word in words] if named else None, vectors
