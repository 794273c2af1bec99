"""Write the generated parts of documents and code: `python -m tools.generate`. `--check` only reports stale parts.

A generated part of README.md, CONTRIBUTING.md or a page in docs/ stands between the lines `<!-- generated:NAME -->` and
`<!-- /generated:NAME -->`. The function NAME in GENERATORS returns it. `generated:NAME:ARGUMENT` passes an argument to
the function. FILES are generated completely.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools import charts, drawings, options, parameters, project, results, structure

# Takes the argument of the marker ("" without one) and returns Markdown.
Generator = Callable[[str], str]

GENERATORS: dict[str, Generator] = {
    "benchmark": results.benchmark,
    "experiment": results.experiment,
    "experiments": results.experiments,
    "headline": results.headline,
    "layers": structure.layers,
    "make-targets": structure.make_targets,
    "options": options.options,
    "parameters": parameters.table,
    "presets": parameters.presets,
    "walk": structure.walk,
}
FILES: dict[str, Generator] = {
    "src/qwp/methods/options.py": parameters.options_module,
    "docs/images/layers.svg": drawings.layers,
    "docs/images/data-path.svg": drawings.data_path,
    "docs/images/growth.svg": charts.growth,
    "docs/images/coresets-premise.svg": charts.coreset_premise,
    "docs/images/coresets-score.svg": charts.coreset_scores,
    "docs/images/null-p-values.svg": charts.null_p_values,
}

# A marker is a line of its own, so that documents can mention markers.
_MARKER = re.compile(r"<!-- (?P<end>/?)generated:(?P<name>[\w-]+(?::[\w.-]+)?) -->")


class DocumentError(Exception):
    """Unpaired markers, or a marker with an unknown name."""


def documents(root: Path = project.ROOT) -> list[Path]:
    """Return the files that may have generated parts."""
    fixed = [root / "README.md", root / "CONTRIBUTING.md"]
    return [path for path in fixed if path.is_file()] + sorted((root / "docs").rglob("*.md"))


def regenerate(text: str, generators: Mapping[str, Generator]) -> tuple[str, list[str]]:
    """Return the text with its parts generated again, and the names of the parts that changed."""
    pieces: list[str] = []
    stale = []
    for name, lines in _parts(text):
        new = lines if name is None else [lines[0], *_generated(name, generators).split("\n"), lines[-1]]
        if name is not None and new != lines:
            stale.append(name)
        pieces.extend(new)
    return "\n".join(pieces), stale


def _parts(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """Yield runs of lines: those outside of markers with None, those from marker to marker with its name."""
    name: str | None = None
    begun = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        marker = _MARKER.fullmatch(line)
        if marker is None:
            lines.append(line)
        elif not marker["end"]:
            if name is not None:
                raise DocumentError(f"line {number}: generated:{marker['name']} begins inside generated:{name}")
            yield None, lines
            name, begun, lines = marker["name"], number, [line]
        elif marker["name"] != name:
            raise DocumentError(f"line {number}: /generated:{marker['name']} has no beginning")
        else:
            yield name, [*lines, line]
            name, lines = None, []
    if name is not None:
        raise DocumentError(f"line {begun}: generated:{name} has no end")
    yield None, lines


def _generated(name: str, generators: Mapping[str, Generator]) -> str:
    function, _, argument = name.partition(":")
    if function not in generators:
        raise DocumentError(f"no generator for {name!r}; expected one of {', '.join(sorted(generators))}")
    return generators[function](argument).strip("\n")


def main(
    arguments: list[str] | None = None,
    root: Path = project.ROOT,
    generators: Mapping[str, Generator] = GENERATORS,
    files: Mapping[str, Generator] = FILES,
) -> int:
    """Write or check all parts. Returns 1 if `--check` finds a stale part, and 2 for wrong markers."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the documents.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a part is stale")
    check = parser.parse_args(arguments).check
    is_stale = False
    # Code first, because documents quote it.
    for name, generator in files.items():
        is_stale = _whole_file(root / name, generator(""), check=check) or is_stale
    for path in documents(root):
        text = path.read_text("utf-8")
        try:
            new, stale = regenerate(text, generators)
        except DocumentError as error:
            print(f"{path.relative_to(root)}: {error}", file=sys.stderr)
            return 2
        if stale:
            is_stale = True
            state = "stale, run `make generated`" if check else "written"
            print(f"{path.relative_to(root)}: {', '.join(stale)}: {state}")
            if not check:
                path.write_text(new, "utf-8")
    return 1 if check and is_stale else 0


def _whole_file(path: Path, new: str, *, check: bool) -> bool:
    """Write a file, or only check it. Returns whether it was stale."""
    if path.is_file() and path.read_text("utf-8") == new:
        return False
    print(f"{path.name}: {'stale, run `make generated`' if check else 'written'}")
    if not check:
        path.write_text(new, "utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
