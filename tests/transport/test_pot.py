"""POT is loaded without the array libraries nobody uses: JAX would take three quarters of a GPU for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.transport.pot import UNUSED, load_pot, require_pot
from tests.libraries import pot

ASK = """
import os, sys
{before}
from qwp.transport.pot import load_pot
ot = load_pot()
assert ot.emd([1.0], [1.0], [[0.0]]).sum() == 1
print(sorted(set({names!r}) & set(sys.modules)), bool(ot.backend.jax), os.environ.get("POT_BACKEND_DISABLE_JAX"))
"""


def _seen(tmp_path: Path, before: str = "", **environment: str) -> str:
    """What a new process says that has (a stand-in of) every one of these libraries."""
    for name in UNUSED:
        (tmp_path / name).mkdir(exist_ok=True)
        # Enough for POT to take it for the real one as far as it looks at import; it gives up at what is not there.
        (tmp_path / name / "__init__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    asked = [sys.executable, "-c", ASK.format(before=before, names=list(UNUSED))]
    kept = {name: value for name, value in os.environ.items() if name not in UNUSED.values()}
    run = subprocess.run(
        asked, env={**kept, "PYTHONPATH": path, **environment}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_libraries_that_nobody_uses_are_not_loaded_and_the_environment_stays(tmp_path: Path) -> None:
    pot()
    assert _seen(tmp_path) == "[] False None"
    assert _seen(tmp_path, POT_BACKEND_DISABLE_JAX="yes") == "[] False yes"


def test_one_that_is_in_use_is_left_to_pot(tmp_path: Path) -> None:
    pot()
    assert _seen(tmp_path, before="import jax") == "['jax'] False None"


def test_it_is_pot() -> None:
    assert load_pot() is pot()


def test_without_pot_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'a thing needs POT, .*pip install "qwp\[pot\]"'):
        require_pot("a thing")
