"""POT, loaded when something needs it."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

from qwp.checks import installed

# The array libraries POT tries to import besides NumPy and Torch, and the variable that keeps it from doing so.
UNUSED = {
    "jax": "POT_BACKEND_DISABLE_JAX",
    "cupy": "POT_BACKEND_DISABLE_CUPY",
    "tensorflow": "POT_BACKEND_DISABLE_TENSORFLOW",
}


def require_pot(what: str) -> None:
    """Refuse to go on without POT. what: what needs it."""
    installed("pot", what)


def load_pot() -> ModuleType:
    """POT, without the array libraries that are installed but that nobody uses.

    At its first import POT would load each of them, which takes seconds; JAX then also keeps three quarters of the
    memory of every GPU for itself, and Torch finds none left.
    """
    kept = {variable: os.environ.get(variable) for variable in UNUSED.values()}
    os.environ.update({variable: "1" for module, variable in UNUSED.items() if module not in sys.modules})
    try:
        return importlib.import_module("ot")
    finally:
        for variable, value in kept.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
