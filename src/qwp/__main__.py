"""`python -m qwp`."""

from __future__ import annotations

from qwp.cli.main import main

if __name__ == "__main__":
    main()
