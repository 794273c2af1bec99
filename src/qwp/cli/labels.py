"""Texts that are shown instead of the names of items, such as the sentence of src:84."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qwp.cli.options import option
from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings, Side
from qwp.spaces.io.sources import check_file

_HELP = "UTF-8 text with a line for each {} item, in the order of the vectors. It is shown instead of the name."


@dataclass(frozen=True)
class Labels:
    """The labels of the items of one side by name. Items without one keep their name."""

    texts: Mapping[str, str]

    @classmethod
    def read(cls, path: Path | None, space: Embeddings, side: Side) -> Labels:
        """Read a file of labels, a line for each item; runs of blanks and tabs become one blank."""
        if path is None:
            return cls({})
        check_file(path)
        try:
            lines = path.read_text("utf-8-sig").removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start:,}") from None
        if len(lines) != len(space):
            raise InputError(
                f"--{side}-labels {path} has {len(lines):,} lines, but {side} has {len(space):,} items; expected one "
                "line for each item, in the order of the vectors"
            )
        texts = (" ".join(line.split()) for line in lines)
        return cls({name: text for name, text in zip(space.words, texts, strict=True) if text})

    def shown(self, name: str) -> str:
        """Return the label of an item, or its name."""
        return self.texts.get(name, name)

    def named(self, given: str) -> str:
        """Return the name of the first item with a label; other text as it is."""
        if given in self.texts:
            return given
        wanted = " ".join(given.split())
        return next((name for name, text in self.texts.items() if text == wanted), given)


@dataclass(frozen=True)
class LabelOptions:
    """Options that name files of labels."""

    src_labels: Path | None = option(_HELP.format("source"))
    tgt_labels: Path | None = option(_HELP.format("target"))

    def read(self, src: Embeddings, tgt: Embeddings) -> dict[Side, Labels]:
        """Return the labels of both sides."""
        return {
            "src": Labels.read(self.src_labels, src, "src"),
            "tgt": Labels.read(self.tgt_labels, tgt, "tgt"),
        }
