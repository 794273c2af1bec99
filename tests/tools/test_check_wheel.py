"""The defects that the check of the built package finds. `make wheel` tests building and installing."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tools import check_wheel, project
from tools.check_wheel import DATA, PackageError

WANTED = {"qwp/__init__.py", "qwp/cli/main.py", "qwp/py.typed"}
GOOD = ["qwp/", *WANTED, "qwp-1.dist-info/METADATA", "qwp-1.dist-info/licenses/LICENSE"]


def test_a_wheel_has_every_wanted_file_the_licence_and_nothing_else() -> None:
    assert check_wheel.wheel_problems(GOOD, WANTED) == []
    for names, problem in (
        ([name for name in GOOD if name != "qwp/py.typed"], "the wheel lacks qwp/py.typed"),
        ([*GOOD, "tests/test_api.py"], "the wheel has tests/test_api.py"),
        (GOOD[:-1], "the wheel lacks the licence"),
    ):
        assert check_wheel.wheel_problems(names, WANTED) == [problem]
    wanted = check_wheel.package_files(project.PACKAGE)
    assert {"qwp/__init__.py", "qwp/cli/main.py", "qwp/py.typed", "qwp/data/demo/en.npz"} <= wanted
    assert all((project.PACKAGE.parent / name).is_file() for name in wanted)


def test_an_sdist_has_the_data_of_the_package() -> None:
    inside = ["LICENSE", "README.md", "pyproject.toml", "src/qwp/version.py", *(f"src/qwp/{name}" for name in DATA)]
    names = ["qwp-1", *(f"qwp-1/{name}" for name in inside)]
    assert check_wheel.sdist_problems([*names, "qwp-1/PKG-INFO"]) == []
    assert check_wheel.sdist_problems(names[:-1]) == [f"the sdist lacks src/qwp/{DATA[-1]}"]


def test_the_demo_must_succeed_and_write_its_report(tmp_path: Path) -> None:
    output = json.dumps({"verdict": "succeeded", "report": "report.html"})
    with pytest.raises(PackageError, match="left no report"):
        check_wheel.check_demo(output, tmp_path)
    (tmp_path / "report.html").write_text("<html>")
    check_wheel.check_demo(output, tmp_path)
    with pytest.raises(PackageError, match="'undecided'"):
        check_wheel.check_demo(output.replace("succeeded", "undecided"), tmp_path)
    for other in ("", "{}", "[]", "null", "verdict: succeeded"):
        with pytest.raises(PackageError, match="did not print its result"):
            check_wheel.check_demo(other, tmp_path)


@pytest.mark.slow
def test_a_new_environment_sees_the_dependencies_but_not_the_checkout(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny-1-py3-none-any.whl"
    about = "tiny-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    python = check_wheel.new_environment(tmp_path / "environment", wheel, install_dependencies=False)
    program = "import tiny, numpy, importlib.util; print(tiny.__file__, importlib.util.find_spec('qwp'))"
    origin, checkout = check_wheel.run([str(python), "-c", program], tmp_path).split()
    assert Path(origin).is_relative_to(tmp_path.resolve() / "environment")
    assert checkout == "None"
