"""What the check of the built package refuses. Building and installing itself is part of `make test`."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from tools import check_wheel, project
from tools.check_wheel import PackageError

WANTED = {"qwp/__init__.py", "qwp/cli/main.py", "qwp/py.typed"}
GOOD = ["qwp/", *WANTED, "qwp-1.dist-info/METADATA", "qwp-1.dist-info/licenses/LICENSE"]


def test_a_good_wheel() -> None:
    assert check_wheel.wheel_problems(GOOD, WANTED) == []


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([name for name in GOOD if name != "qwp/py.typed"], "the wheel lacks qwp/py.typed"),
        ([*GOOD, "tests/test_api.py"], "the wheel has tests/test_api.py"),
        ([*GOOD, "qwp/gone.py"], "the wheel has qwp/gone.py"),
        (GOOD[:-1], "the wheel lacks the licence"),
    ],
)
def test_a_wheel_that_lacks_something_or_has_too_much(names: list[str], problem: str) -> None:
    assert check_wheel.wheel_problems(names, WANTED) == [problem]


def test_what_the_wheel_must_have() -> None:
    wanted = check_wheel.package_files(project.PACKAGE)
    assert {"qwp/__init__.py", "qwp/cli/main.py", "qwp/py.typed", "qwp/data/demo/en.npz"} <= wanted
    assert all((project.PACKAGE.parent / name).is_file() for name in wanted)


def test_an_sdist() -> None:
    inside = ["LICENSE", "README.md", "pyproject.toml", "src/qwp/version.py"]
    inside += [f"src/qwp/{name}" for name in check_wheel._DATA]
    names = ["qwp-1", *(f"qwp-1/{name}" for name in inside)]
    assert check_wheel.sdist_problems([*names, "qwp-1/PKG-INFO"]) == []
    assert check_wheel.sdist_problems(names[:-1]) == [f"the sdist lacks src/qwp/{check_wheel._DATA[-1]}"]


def test_the_demo(tmp_path: Path) -> None:
    output = json.dumps({"verdict": "succeeded", "report": "report.html"})
    with pytest.raises(PackageError, match="left no report"):
        check_wheel.check_demo(output, tmp_path)
    (tmp_path / "report.html").touch()
    with pytest.raises(PackageError, match="left no report"):
        check_wheel.check_demo(output, tmp_path)
    (tmp_path / "report.html").write_text("<html>")
    check_wheel.check_demo(output, tmp_path)
    with pytest.raises(PackageError, match="'undecided'"):
        check_wheel.check_demo(output.replace("succeeded", "undecided"), tmp_path)


@pytest.mark.parametrize("output", ["", "{}", "[]", "null", "verdict: succeeded"])
def test_a_demo_that_prints_something_else(tmp_path: Path, output: str) -> None:
    with pytest.raises(PackageError, match="printed something else"):
        check_wheel.check_demo(output, tmp_path)


def test_commands_run_in_their_folder_and_without_the_paths_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    program = "import os; print(os.getcwd(), os.environ.get('PYTHONPATH'))"
    assert check_wheel.run([sys.executable, "-c", program], tmp_path).split() == [str(tmp_path.resolve()), "None"]


def test_a_command_that_fails_is_shown_with_what_it_said(tmp_path: Path) -> None:
    program = "import sys; print('out'); sys.exit('err')"
    with pytest.raises(PackageError, match=r"ended with 1:\nout\nerr"):
        check_wheel.run([sys.executable, "-c", program], tmp_path)


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


def test_only_one() -> None:
    assert check_wheel.only(iter("a"), "letter") == "a"
    with pytest.raises(PackageError, match="expected one letter, found 2"):
        check_wheel.only("ab", "letter")
    with pytest.raises(PackageError, match="expected one letter, found 0"):
        check_wheel.only("", "letter")


def test_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def built(scratch: Path) -> tuple[Path, Path]:
        made = scratch / "qwp-1.tar.gz", scratch / "qwp-1.whl"
        for path in made:
            path.write_text(path.name)
        return made

    def refuse(*_: object) -> None:
        raise PackageError("it lacks everything")

    monkeypatch.setattr(check_wheel, "build", built)
    monkeypatch.setattr(check_wheel, "check_contents", lambda *_: None)
    monkeypatch.setattr(check_wheel, "run_installed", lambda *_: None)
    out = tmp_path / "new" / "dist"
    assert check_wheel.main(["--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["qwp-1.tar.gz", "qwp-1.whl"]

    monkeypatch.setattr(check_wheel, "check_contents", refuse)
    assert check_wheel.main(["--out", str(tmp_path / "other")]) == 1
    assert "it lacks everything" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
