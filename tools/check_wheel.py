"""Build sdist and wheel, check their files, and run the demo of the installed wheel: `python -m tools.check_wheel`.

The build starts from a copy of the checkout, so it contains nothing of an earlier build. The wheel is installed into a
new environment, which sees the dependencies of this one but not the checkout. `--install-dependencies` installs the
dependencies instead, as for a user.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path
from typing import TypeVar

from tools import project

# Environments, caches, earlier builds and other files that a checkout collects.
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "htmlcov", "scratch", "shared", "site"
)
DATA = (
    *("py.typed", "data/calibration.json", "data/demo/en.npz", "data/demo/es.npz", "data/demo/en-es.tsv"),
    *(f"experiments/configs/{name}.toml" for name in ("bench", "smoke", "table1", "table2", "table3", "table4")),
    "experiments/published/aboagye2022.toml",
    "experiments/published/claims.toml",
    *(f"explore/static/{name}" for name in ("index.html", "style.css")),
    *(f"explore/static/{name}.js" for name in ("app", "api", "dom", "word", "table", "map", "points", "about")),
    *(f"explore/static/{name}.js" for name in ("compare", "charts")),
)
_DEMO_SECONDS = 600

T = TypeVar("T")


class PackageError(Exception):
    """A defect of the built package."""


def main(arguments: list[str] | None = None) -> int:
    """Build and check the package. Returns 1 if it has a defect."""
    parser = argparse.ArgumentParser(description="Build sdist and wheel, and check them.")
    parser.add_argument("--out", type=Path, help="folder that gets both after the checks")
    parser.add_argument(
        "--install-dependencies",
        action="store_true",
        help="install the dependencies of the wheel instead of using those of this environment",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="qwp-wheel-") as scratch:
        try:
            sdist, wheel = build(Path(scratch))
            check_contents(sdist, wheel)
            run_installed(wheel, Path(scratch), options.install_dependencies)
        except PackageError as error:
            print(f"the package has a defect: {error}", file=sys.stderr)
            return 1
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            for path in (sdist, wheel):
                shutil.copy2(path, options.out)
    print(f"{sdist.name} and {wheel.name} passed all checks")
    return 0


def build(scratch: Path) -> tuple[Path, Path]:
    """Build the sdist and the wheel from it, and run `twine check --strict` on both."""
    copy, out = scratch / "checkout", scratch / "dist"
    shutil.copytree(project.ROOT, copy, ignore=_LEFT_OUT)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)], scratch)
    sdist, wheel = only(out.glob("*.tar.gz"), "sdist"), only(out.glob("*.whl"), "wheel")
    run([sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)], scratch)
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """Refuse archives with missing or additional files, or with another version than the checkout."""
    with zipfile.ZipFile(wheel) as archive:
        problems = wheel_problems(archive.namelist(), package_files(project.PACKAGE))
        metadata = only((n for n in archive.namelist() if n.endswith(".dist-info/METADATA")), "METADATA")
        version = Parser().parsestr(archive.read(metadata).decode("utf-8"))["Version"]
    with tarfile.open(sdist) as archive:
        problems += sdist_problems(archive.getnames())
    if version != project.version():
        problems.append(f"the wheel is version {version}, the checkout {project.version()}")
    if problems:
        raise PackageError("; ".join(problems))


def package_files(package: Path) -> set[str]:
    """Return the files that the wheel must have: the modules and the data of the package."""
    modules = {path.relative_to(package.parent).as_posix() for path in package.rglob("*.py")}
    return modules | {f"{package.name}/{name}" for name in DATA}


def wheel_problems(names: Iterable[str], wanted: set[str]) -> list[str]:
    """Return the missing and the additional files of a wheel."""
    found = {name for name in names if not name.endswith("/")}
    about = {name for name in found if name.split("/")[0].endswith(".dist-info")}
    problems = [f"the wheel lacks {name}" for name in sorted(wanted - found)]
    problems += [f"the wheel has {name}" for name in sorted(found - about - wanted)]
    if not any(name.endswith("/licenses/LICENSE") for name in about):
        problems.append("the wheel lacks the licence")
    return problems


def sdist_problems(names: Iterable[str]) -> list[str]:
    """Return the missing files of an sdist."""
    found = {name.partition("/")[2] for name in names}
    wanted = {"LICENSE", "README.md", "pyproject.toml", *(f"src/qwp/{name}" for name in (*DATA, "version.py"))}
    return [f"the sdist lacks {name}" for name in sorted(wanted - found)]


def run_installed(wheel: Path, scratch: Path, install_dependencies: bool) -> None:
    """Install the wheel into a new environment, and run `qwp --version` and `qwp demo` in an empty folder."""
    environment, empty = scratch / "environment", scratch / "empty"
    empty.mkdir()
    python = new_environment(environment, wheel, install_dependencies)
    origin = Path(run([str(python), "-c", "import qwp; print(qwp.__file__)"], empty).strip())
    if not origin.is_relative_to(environment.resolve()):
        raise PackageError(f"qwp was imported from {origin}, not from the installed wheel")
    qwp = str(python.with_name("qwp"))
    said = run([qwp, "--version"], empty).strip()
    if said != f"qwp {project.version()}":
        raise PackageError(f"`qwp --version` says {said!r}: expected 'qwp {project.version()}'")
    check_demo(run([qwp, "demo", "--json"], empty), empty)


def new_environment(folder: Path, wheel: Path, install_dependencies: bool) -> Path:
    """Return the Python of a new environment with the wheel and its dependencies."""
    venv.create(folder, with_pip=False)
    python = folder.resolve() / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check"]
    if install_dependencies:
        run([*pip, str(wheel)], folder)
        return python
    run([*pip, "--no-deps", "--no-index", str(wheel)], folder)
    # A .pth file adds folders but ignores the .pth files in them. The checkout is installed by such a file, so it stays
    # invisible.
    site = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    visible = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in visible), "utf-8")
    return python


def check_demo(output: str, folder: Path) -> None:
    """Refuse a demo whose verdict is not "succeeded" or that wrote no report."""
    try:
        result = json.loads(output)
        verdict, report = result["verdict"], folder / result["report"]
    except (ValueError, KeyError, TypeError) as error:
        raise PackageError(f"`qwp demo --json` did not print its result: {output[:200]!r}") from error
    if verdict != "succeeded":
        raise PackageError(f"the verdict of `qwp demo` is {verdict!r}")
    if not report.is_file() or report.stat().st_size == 0:
        raise PackageError(f"`qwp demo` left no report in {report}")


def run(command: list[str], folder: Path) -> str:
    """Run a command in a folder without the caller's Python paths. Returns its stdout."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=_DEMO_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PackageError(f"{' '.join(command)} took more than {_DEMO_SECONDS} s") from error
    if done.returncode != 0:
        raise PackageError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def only(items: Iterable[T], what: str) -> T:
    """Return the only item."""
    found = list(items)
    if len(found) != 1:
        raise PackageError(f"expected one {what}, found {len(found)}")
    return found[0]


if __name__ == "__main__":
    sys.exit(main())
