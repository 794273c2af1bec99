"""The entry point of `python -m qwp` and of the console script."""

from __future__ import annotations

import sys

from qwp.version import __version__


def main() -> None:
    """Run the command line. `--version` is answered without importing it."""
    if sys.argv[1:] == ["--version"] and _printed_version():
        return
    from qwp.cli.main import main as run

    run()


def _printed_version() -> bool:
    """Print the version; return False if that fails, so that the command line reports the error."""
    try:
        sys.stdout.write(f"qwp {__version__}\n")
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # a full disk, a closed pipe, no stdout
        return False
    return True


if __name__ == "__main__":
    main()
