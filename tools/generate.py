"""Write what is generated, documents and code: `python -m tools.generate`, or with `--check` say what is stale.

A generated part stands between two lines `<!-- generated:NAME -->` and `<!-- /generated:NAME -->` in README.md,
CONTRIBUTING.md or docs/*.md, and is written by the function NAME in GENERATORS. A name may have an argument for
its function after a colon, as in `generated:NAME:ARGUMENT`. FILES are generated as a whole.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools import drawings, growth, parameters, project, results, structure

# Takes the argument in the marker, "" where there is none, and returns Markdown.
Generator = Callable[[str], str]

GENERATORS: dict[str, Generator] = {
    "benchmark": results.benchmark,
    "experiment": results.experiment,
    "layers": structure.layers,
    "make-targets": structure.make_targets,
    "parameters": parameters.table,
    "presets": parameters.presets,
    "walk": structure.walk,
}
FILES: dict[str, Generator] = {
    "src/qwp/methods/options.py": parameters.options_module,
    "docs/images/layers.svg": drawings.layers,
    "docs/images/data-path.svg": drawings.data_path,
    "docs/images/growth.svg": growth.chart,
}

# Only a line of its own is a marker, so that documents can speak of markers.
_MARKER = re.compile(r"<!-- (?P<end>/?)generated:(?P<name>[\w-]+(?::[\w.-]+)?) -->")


class DocumentError(Exception):
    """Markers that do not fit together, or a name that nobody generates."""


def documents(root: Path = project.ROOT) -> list[Path]:
    """The files that may have generated parts."""
    fixed = [root / "README.md", root / "CONTRIBUTING.md"]
    return [path for path in fixed if path.is_file()] + sorted((root / "docs").glob("*.md"))


def regenerate(text: str, generators: Mapping[str, Generator]) -> tuple[str, list[str]]:
    """The text with its generated parts written anew, and the names of those that differ from before."""
    pieces: list[str] = []
    stale = []
    for name, lines in _parts(text):
        new = lines if name is None else [lines[0], *_generated(name, generators).split("\n"), lines[-1]]
        if name is not None and new != lines:
            stale.append(name)
        pieces.extend(new)
    return "\n".join(pieces), stale


def _parts(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """Consecutive lines: those outside of markers with None, those from marker to marker with its name."""
    name: str | None = None
    begun = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        marker = _MARKER.fullmatch(line)
        if marker is None:
            lines.append(line)
        elif not marker["end"]:
            if name is not None:
                raise DocumentError(f"line {number}: generated:{marker['name']} begins inside of generated:{name}")
            yield None, lines
            name, begun, lines = marker["name"], number, [line]
        elif marker["name"] != name:
            raise DocumentError(f"line {number}: /generated:{marker['name']} ends what has not begun")
        else:
            yield name, [*lines, line]
            name, lines = None, []
    if name is not None:
        raise DocumentError(f"line {begun}: generated:{name} has no end")
    yield None, lines


def _generated(name: str, generators: Mapping[str, Generator]) -> str:
    function, _, argument = name.partition(":")
    if function not in generators:
        raise DocumentError(f"nothing generates {name!r}; known are {', '.join(sorted(generators))}")
    return generators[function](argument).strip("\n")


def main(
    arguments: list[str] | None = None,
    root: Path = project.ROOT,
    generators: Mapping[str, Generator] = GENERATORS,
    files: Mapping[str, Generator] = FILES,
) -> int:
    """Exit code 1: `--check` found something stale; 2: a document has markers that cannot work."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the documents.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something is stale")
    check = parser.parse_args(arguments).check
    anything = False
    # Code first: documents quote it.
    for name, generator in files.items():
        anything = _whole_file(root / name, generator(""), check=check) or anything
    for path in documents(root):
        text = path.read_text("utf-8")
        try:
            new, stale = regenerate(text, generators)
        except DocumentError as error:
            print(f"{path.relative_to(root)}: {error}", file=sys.stderr)
            return 2
        if stale:
            anything = True
            state = "stale, run `make generated`" if check else "written"
            print(f"{path.relative_to(root)}: {', '.join(stale)}: {state}")
            if not check:
                path.write_text(new, "utf-8")
    return 1 if check and anything else 0


def _whole_file(path: Path, new: str, *, check: bool) -> bool:
    """Write a file, unless only to check; returns whether it was stale."""
    if path.is_file() and path.read_text("utf-8") == new:
        return False
    print(f"{path.name}: {'stale, run `make generated`' if check else 'written'}")
    if not check:
        path.write_text(new, "utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
