"""The version of the package and of the code that determines results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

__version__ = "0.2.0.dev0"

# The source code that determines results. The other packages show results, download files or call these.
_COMPUTING = (
    *("arrays", "judging", "maps", "methods", "results", "search", "spaces", "stages", "ot"),
    "parameters.py",
)


@cache
def code_version() -> str:
    """Return the version with a hash of the source code that determines results, such as "0.2.0+1f0c55e2a7b94d03".

    It is part of the keys of caches and checkpoints, so that none is used after a change of the code.
    """
    from importlib import resources  # imported here to keep `import qwp` fast

    return version_of(resources.files("qwp"))


def version_of(package: Traversable) -> str:
    """Return `code_version` of a copy of this package, or the version alone if its source files cannot be read.

    package: a folder, or the `importlib.resources` path of a folder in a zip file.
    """
    from hashlib import sha256

    try:
        sources = sorted(found for name in _COMPUTING for found in _sources(package / name, name))
    except OSError:
        return __version__
    text = "".join(f"{name}\n{len(content)}\n{content}" for name, content in sources)
    return f"{__version__}+{sha256(text.encode()).hexdigest()[:16]}" if sources else __version__


def _sources(where: Traversable, name: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each Python file at a path or below it."""
    if name.endswith(".py"):
        yield name, where.read_text("utf-8")
    elif "." not in name and where.is_dir():
        for inner in where.iterdir():
            yield from _sources(inner, f"{name}/{inner.name}")
