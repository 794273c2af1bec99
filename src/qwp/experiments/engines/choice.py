"""Which engine, as a user asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qwp.errors import InputError, installed, one_of
from qwp.experiments.engines.jobs import Engine
from qwp.experiments.engines.local import LocalEngine, local_places

LOCAL, RAY = "local", "ray"
ENGINES = (LOCAL, RAY)


@dataclass(frozen=True)
class Asked:
    """What was asked for. address: of a Ray cluster; workers: jobs at a time, None for as many as there is room for."""

    name: str = LOCAL
    address: str | None = None
    device: str = "auto"
    workers: int | None = None

    def check(self) -> None:
        """Raise an InputError for what cannot be, before anything is read."""
        one_of(ENGINES, engine=self.name)
        if self.address is not None and self.name != RAY:
            raise InputError(f"--address {self.address} is that of a Ray cluster; expected --engine ray with it")
        if self.name == RAY:
            installed("ray", "--engine ray")

    def engine(self, jobs: int) -> Engine[Any]:
        """The engine, for so many jobs."""
        if self.name == LOCAL:
            return LocalEngine(local_places(self.device, self.workers)[:jobs])
        from qwp.experiments.engines.cluster import RayEngine

        return RayEngine(self.address, device=self.device, workers=self.workers)
