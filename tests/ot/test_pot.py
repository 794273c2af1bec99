"""POT is loaded without the array libraries nobody uses: JAX would take three quarters of a GPU for itself."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from qwp.errors import InputError
from qwp.ot.pot import UNUSED, load_pot, require_pot
from tests.libraries import pot

ASK = """
import os, sys
from qwp.ot.pot import load_pot
ot = load_pot()
assert ot.emd([1.0], [1.0], [[0.0]]).sum() == 1
print(sorted(set({names!r}) & set(sys.modules)), bool(ot.backend.jax), os.environ.get("POT_BACKEND_DISABLE_JAX"))
"""


@pytest.mark.slow
def test_libraries_that_nobody_uses_are_not_loaded(tmp_path: Path) -> None:
    """Ask a new process that has a stand-in of every one of these libraries."""
    pot()
    for name in UNUSED:
        (tmp_path / name).mkdir()
        # Enough for POT to take it for the real one as far as it looks at import; it gives up at what is not there.
        (tmp_path / name / "__init__.py").write_text("")
    kept = {name: value for name, value in os.environ.items() if name not in UNUSED.values()}
    environment = {**kept, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    asked = [sys.executable, "-c", ASK.format(names=list(UNUSED))]
    run = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[] False None"


def test_a_library_in_use_is_left_to_pot_and_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    during: list[dict[str, str | None]] = []

    def import_module(name: str) -> ModuleType:
        assert name == "ot"
        during.append({module: os.environ.get(variable) for module, variable in UNUSED.items()})
        return ModuleType(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    for module in ("cupy", "tensorflow"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for variable in UNUSED.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(UNUSED["cupy"], "yes")
    assert load_pot().__name__ == "ot"
    assert during == [{"jax": None, "cupy": "1", "tensorflow": "1"}]
    after = {module: os.environ.get(variable) for module, variable in UNUSED.items()}
    assert after == {"jax": None, "cupy": "yes", "tensorflow": None}


def test_it_is_pot() -> None:
    assert load_pot() is pot()


def test_without_pot_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'a thing needs POT, .*pip install "qwp\[pot\]"'):
        require_pot("a thing")
