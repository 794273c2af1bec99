"""Damaged files that another library reads: whatever it raises, as an InputError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qwp.errors import InputError, QwpError


@contextmanager
def damage_explained(path: Path, what: str) -> Iterator[None]:
    """Whatever a library raises for a damaged file, and each has a dozen kinds. what: such as "npz archive"."""
    try:
        yield
    except QwpError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is a damaged or cut {what} ({type(error).__module__}.{type(error).__name__}), "
            "expected a complete one: copy or save it again"
        ) from error
