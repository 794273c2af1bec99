"""`python -m qwp`, and what the console script calls."""

from __future__ import annotations

import sys

from qwp.version import __version__


def main() -> None:
    """Run the command line. The version is said without loading it."""
    if sys.argv[1:] == ["--version"] and _told():
        return
    from qwp.cli.main import main as run

    run()


def _told() -> bool:
    """Whether the version could be written; if not, the command line says what is the matter."""
    try:
        sys.stdout.write(f"qwp {__version__}\n")
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # a full disk, a reader that has gone, no stdout at all
        return False
    return True


if __name__ == "__main__":
    main()
