"""The same guards as ``fuzz.files`` under Atheris, which looks for inputs that reach new lines of the readers.

``pip install atheris`` (Linux, and not for every Python), then ``python -m fuzz.atheris_files -max_total_time=600``.
All arguments go to libFuzzer; a folder among them is a corpus that it reads and extends. The first byte of an input
chooses the name of the file, the rest is its content.
"""

from __future__ import annotations

import importlib
import logging
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import QwpError
from qwp.spaces import io
from qwp.spaces.lexicon import Lexicon

_NAMES = (
    *("x.vec", "x.glove", "x.bin", "x.npz", "x.safetensors", "x.json", "x.txt", "x.csv"),
    *("x.fasttext", "x.npy", "x.parquet", "x.arrow", "x.db", "x.duckdb", "x.faiss"),
)
_BESIDE = b'{"words": ["a", "b", "c"]}'


class OneInput:
    """Reads one input after the other, from the same folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, data: bytes) -> None:
        """Read an input; anything but a QwpError escapes and is a finding."""
        if not data:
            return
        name = _NAMES[data[0] % len(_NAMES)]
        (self._folder / name).write_bytes(data[1:])
        with suppress(QwpError):
            self._read(name)

    def _read(self, name: str) -> None:
        path = self._folder / name
        if name in ("x.txt", "x.csv"):
            Lexicon.load(path)
            return
        if name == "x.json":
            # The words beside a sound tensor of three rows.
            path = self._folder / "sound.safetensors"
            (self._folder / "sound.json").write_bytes((self._folder / name).read_bytes())
        elif name == "x.safetensors":
            (self._folder / "x.json").write_bytes(_BESIDE)
        io.load(path, errors="skip")


def sound_tensor(folder: Path) -> None:
    """Put a tensor of three rows into the folder, for words that are mutated."""
    with io.open_writer(folder / "sound.safetensors", 2, count=3) as writer:
        writer.write(["a", "b", "c"], np.ones((3, 2), dtype=np.float32))


def main() -> int:
    """Run until something is found or libFuzzer's limits are reached."""
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        print("atheris is not installed (pip install atheris); python -m fuzz.files needs nothing and runs everywhere")
        return 2
    logging.disable(logging.CRITICAL)
    atheris.instrument_all()
    with tempfile.TemporaryDirectory(prefix="qwp-atheris-") as name:
        sound_tensor(Path(name))
        atheris.Setup(sys.argv, OneInput(Path(name)))
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
