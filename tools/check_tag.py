"""Check that a tag may be released: `python -m tools.check_tag v0.2.0`.

The tag, the version of the package, the citation and the change log must agree. The change log must have the date of a
release that is no candidate.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tools import project


def problems(tag: str, root: Path = project.ROOT) -> list[str]:
    """Return the reasons that prevent a release of this tag."""
    version = project.version(root)
    release = project.release_of(version)
    cited = project.citation(root).get("version")
    when = project.changes(root).get(release)
    found = []
    if ".dev" in version:
        found.append(f"{version} is a development version: remove the .dev part in src/qwp/version.py")
    elif tag != f"v{version}":
        found.append(f"the tag is {tag}, but the version is {version}: expected the tag v{version}")
    if cited != release:
        found.append(f"CITATION.cff has version {cited}: expected {release}")
    if when is None:
        found.append(f"CHANGELOG.md has no section for {release}: expected `## [{release}] - YYYY-MM-DD`")
    elif version == release and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", when):
        found.append(f"CHANGELOG.md has {when!r} for {release}: expected the date of the release")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Check a tag. Returns 1 if it may not be released."""
    parser = argparse.ArgumentParser(description="Check that a tag may be released.")
    parser.add_argument("tag", help="the tag, such as v0.2.0")
    found = problems(parser.parse_args(arguments).tag)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
