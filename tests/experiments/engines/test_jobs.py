"""What engines and jobs say to each other."""

from __future__ import annotations

from qwp.errors import InputError
from qwp.experiments.engines.jobs import failure


def test_a_failure_says_what_happened_and_not_without_end() -> None:
    assert failure(InputError("no such file")) == {"error": "InputError: no such file"}
    assert len(failure(ValueError("x" * 10_000))["error"]) == 2000
