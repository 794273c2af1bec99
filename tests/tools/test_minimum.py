"""The lowest versions of dependencies."""

from __future__ import annotations

import pytest

from tools import minimum


def test_lower_bounds_become_pins() -> None:
    requirements = ["numpy>=1.26", "mkdocs>=1.6,<2", "tomli>=2; python_version < '3.11'"]
    assert minimum.lowest(requirements) == ["numpy==1.26", "mkdocs==1.6", "tomli==2; python_version < '3.11'"]


def test_a_requirement_without_a_lower_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="received \\['rich'\\]"):
        minimum.lowest(["numpy>=1.26", "rich"])


def test_every_dependency_of_the_package_has_a_lower_bound(capsys: pytest.CaptureFixture[str]) -> None:
    minimum.main()
    pins = capsys.readouterr().out.splitlines()
    assert any(pin.startswith("numpy==") for pin in pins)
    assert any(pin.startswith("faiss-cpu==") for pin in pins)
