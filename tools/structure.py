"""Generated parts of documents about the structure of the project: layers, walk of a fit, make targets.

Each function takes the argument of its marker, which is empty here, and returns Markdown. Docstrings are read from the
source, so the package need not be importable.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from tools import project

_TARGET = re.compile(r"^(?P<name>[a-z-]+):.*?## (?P<help>.+?)\s*$", re.MULTILINE)


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with escaped bars in its cells."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def layers(_: str = "", root: Path = project.ROOT) -> str:
    """Return the layers that import-linter enforces, highest first, each with its description."""
    rows = []
    for number, names in enumerate(layer_names(root), 1):
        for name in names:
            path = root / "src" / "qwp" / name
            source = path if path.is_dir() else path.with_suffix(".py")
            if source.exists():
                rows.append([str(number), f"`qwp.{name}`", project.docstring_line(source)])
    return table(["layer", "package or module", "what is in it"], rows)


def layer_names(root: Path = project.ROOT) -> list[list[str]]:
    """Return the modules of each layer in pyproject.toml, highest first."""
    contracts = project.pyproject(root)["tool"]["importlinter"]["contracts"]
    contract = next(c for c in contracts if c["type"] == "layers")
    return [[name.strip(" ()") for name in re.split(r"[|:]", layer)] for layer in contract["layers"]]


# --------------------------------------------------------------------------- the walk of a fit


@dataclass(frozen=True)
class Step:
    """A function that `qwp.align(X, Y)` calls: its file below src/qwp, its name, and what it does."""

    file: str
    function: str
    does: str

    def line(self, package: Path = project.PACKAGE) -> int:
        """Return the line of the definition; raise a ValueError if there is none."""
        body: list[ast.stmt] = ast.parse((package / self.file).read_text("utf-8")).body
        found: ast.stmt | None = None
        for name in self.function.split("."):
            found = next((each for each in body if getattr(each, "name", None) == name), None)
            if not isinstance(found, (ast.ClassDef, ast.FunctionDef)):
                raise ValueError(f"{self.file} has no {self.function}")
            body = found.body
        assert found is not None, "a name has at least one part"
        return found.lineno


_ALIGNER, _PROBLEM = "methods/aligner.py", "stages/problem.py"
# In the order of the calls, which tests/tools/test_structure.py checks.
WALK = (
    Step("api.py", "align", "creates an aligner of the method with these parameters and fits it"),
    Step(_ALIGNER, "Aligner.fit", "makes the calls of steps 3, 4, 7 and 11, and sets `alignment_`"),
    Step(_ALIGNER, "Aligner.validate", "checks all parameters, and whether the method uses a lexicon"),
    Step(_ALIGNER, "Aligner._begin", "reads X and Y, and returns the `Problem` with the initial or saved `State`"),
    Step(_PROBLEM, "Prepare.spaces", "normalises both spaces on the device and estimates the order of their words"),
    Step(_PROBLEM, "Prepare.problem", "combines the spaces, the known pairs and the seed into a `Problem`"),
    Step("stages/pipeline.py", "Pipeline.run", "calls the stages in turn and saves the `State` after each"),
    Step("stages/init/best_of.py", "BestOf.run_many", "initialize: tries initializers and returns the best map"),
    Step(
        "stages/wasserstein_procrustes.py",
        "WassersteinProcrustes.run_many",
        "solve: transports coresets onto each other and moves the map along the plans",
    ),
    Step("stages/refinement.py", "CslsRefinement.refined", "refine: induces CSLS dictionaries and fits maps to them"),
    Step(_ALIGNER, "Aligner._finish", "judges the maps and returns the `Alignment`"),
    Step(
        "judging/verdict.py", "judge", "compares the maps with null maps and estimates how many translations are right"
    ),
)


def walk(_: str = "", package: Path = project.PACKAGE) -> str:
    """Return the functions that a fit calls, with their files. Each must exist, see `Step.line`."""
    rows = [
        [str(number), f"`{step.file}`", f"`{step.function}`", step.does]
        for number, step in enumerate(WALK, 1)
        if step.line(package)
    ]
    return table(["step", "file", "function", "what it does"], rows)


def make_targets(_: str = "", root: Path = project.ROOT) -> str:
    """Return the make targets with their help."""
    rows = [[f"`make {name}`", text] for name, text in target_help(root).items()]
    return table(["command", "what it does"], rows)


def target_help(root: Path = project.ROOT) -> dict[str, str]:
    """Return the targets of the Makefile with a help text, in its order."""
    return {found["name"]: found["help"] for found in _TARGET.finditer((root / "Makefile").read_text("utf-8"))}
