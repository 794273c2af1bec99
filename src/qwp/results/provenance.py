"""Where a result came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from qwp.results.identity import Identity


@dataclass(frozen=True)
class InputRecord:
    """Which vectors went in: their file, as it was named, and a hash of the words and numbers that were read.

    complete: False when only the first words of the file were read.
    """

    path: str | None
    sha256: str
    n_words: int
    dim: int
    complete: bool = True


@dataclass(frozen=True)
class Provenance:
    """Everything needed to run it again: version, method, config, seed, inputs, and the seconds each stage took.

    supervision: hashes of the seed lexicon and of the start matrix, None where there was none. order: whether the words
    were taken in their order for that of frequency ("given"), or one was "estimated" from the vectors.
    """

    version: str
    method: str
    config: dict[str, Any]
    seed: int
    backend: str
    src: InputRecord
    tgt: InputRecord
    seconds: dict[str, float] = field(default_factory=dict)
    supervision: dict[str, str | None] = field(default_factory=dict)
    order: str = "given"

    @classmethod
    def of(cls, identity: Identity, **others: Any) -> Provenance:
        """What an identity says, and the `others`."""
        return cls(
            version=identity.version,
            method=identity.method,
            config=dict(identity.config),
            seed=identity.seed,
            supervision=dict(identity.supervision),
            **others,
        )

    def identity(self) -> Identity:
        """What tells this run of two spaces from others."""
        inputs = {"src": self.src.sha256, "tgt": self.tgt.sha256}
        return Identity(self.version, self.method, self.config, self.seed, inputs, self.supervision)
