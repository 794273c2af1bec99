from __future__ import annotations

from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.spaces.io.damage import damage_explained


def test_whatever_a_library_raises_becomes_one_sentence() -> None:
    with (
        pytest.raises(InputError, match=r"x is a damaged or cut thing \(builtins.KeyError\), expected a complete one"),
        damage_explained(Path("x"), "thing"),
    ):
        raise KeyError("hidden")
    with pytest.raises(InputError, match=r"^mine$"), damage_explained(Path("x"), "thing"):
        raise InputError("mine")
