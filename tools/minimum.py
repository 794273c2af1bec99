"""Print the lowest allowed version of each dependency in pyproject.toml as constraints for pip.

`make test-minimum` installs them. Torch is left out, because its lowest version has no small CPU build.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from tools.project import pyproject

EXTRAS = ("faiss", "pot", "arrow", "duckdb")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)>=(?P<lowest>[\d.]+)[^;]*(?P<marker>;.*)?")


def lowest(requirements: Iterable[str]) -> list[str]:
    """Return each requirement "name>=version" as "name==version"; refuse requirements without a lower bound."""
    found = [(each, _REQUIREMENT.fullmatch(each)) for each in requirements]
    missing = [each for each, match in found if match is None]
    if missing:
        raise ValueError(f"received {missing} in pyproject.toml, expected name>=version")
    return [f"{match['name']}=={match['lowest']}{match['marker'] or ''}" for _, match in found if match is not None]


def main() -> None:
    """Print one constraint per line."""
    project = pyproject()["project"]
    extras = (each for name in EXTRAS for each in project["optional-dependencies"][name])
    sys.stdout.write("\n".join(lowest([*project["dependencies"], *extras])) + "\n")


if __name__ == "__main__":
    main()
