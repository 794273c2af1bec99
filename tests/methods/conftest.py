"""What several tests of methods share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qwp.methods import QWP, WP, Multi
from qwp.methods.qwp import initializers
from tests.conftest import SHORT_SEARCH


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all methods that search for initial maps search with little effort."""
    for method in (QWP, WP, Multi):
        monkeypatch.setattr(method, "pipeline", replace(method.pipeline, init=initializers(SHORT_SEARCH)))
