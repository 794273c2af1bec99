"""Settings files in TOML, small and harmless."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from qwp.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# A settings file is a few lines, the longest of them the name of a file. The parser takes memory that grows with the
# square of a line: a key of a million dots would fill any machine.
_MOST_BYTES = 1 << 16
_MOST_LINE_BYTES = 5000


def read_toml(path: Path, *, like: str) -> dict[str, Any]:
    """What a settings file says. like: a line that it might have, for the message where it is no TOML."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read ({error.strerror}): check its name") from error
    if len(raw) > _MOST_BYTES:
        raise InputError(f"{path} is larger than {_MOST_BYTES:,} bytes; expected a few lines of settings")
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if len(line) > _MOST_LINE_BYTES:
            raise InputError(f"line {number} of {path} has {len(line):,} bytes; expected a name and a value")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a ValueError is also a text that is not UTF-8, or 5000 digits
        raise InputError(f"{path} is not TOML ({error}); expected lines like: {like}") from error
