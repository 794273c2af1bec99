"""A method as a composition of stages: prepare the spaces, initialize a map, solve for a better one, refine it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from qwp.errors import InputError
from qwp.ot.coreset_source import Banks
from qwp.parameters import START, Declaration, Settings, param
from qwp.stages.problem import Prepare, Problem
from qwp.stages.stage import FINISHED, Monitor, Stage, State, timed, unprojected


class StageCache(Protocol):
    """A cache of states and coreset banks, shared by the fits of one process."""

    def banks(self, key: str, draw: Callable[[], Banks]) -> Banks:
        """Return the coreset banks of a key; call `draw` if they are not cached."""

    def load(self, keys: Mapping[str, str]) -> tuple[State, Mapping[str, float]] | None:
        """Return the latest cached state and the seconds spent on it, or None. keys: by the name of the next stage."""

    def save(self, key: str, state: State, seconds: Mapping[str, float]) -> None:
        """Cache a state. seconds: spent on each stage so far."""


@dataclass(frozen=True, kw_only=True)
class Pipeline(Settings):
    """The stages of a method in the order in which they run."""

    prepare: Prepare = Prepare()
    init: Stage | None = None
    solve: Stage | None = None
    refine: Stage | None = None

    @property
    def stages(self) -> list[Stage]:
        """The stages that run."""
        return [stage.chosen for stage in (self.init, self.solve, self.refine) if stage is not None]

    @property
    def compares_orders(self) -> bool:
        """Whether a stage compares an estimated order of the words with the given one."""
        return any(stage.compares_orders for stage in self.stages)

    @property
    def holds_out_pairs(self) -> bool:
        """Whether a stage needs some of the known pairs to be held out."""
        return any(stage.holds_out_pairs for stage in self.stages)

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Raise an InputError for a lexicon or a matrix that no stage uses, or that a stage lacks."""
        for stage in (self.init, self.solve, self.refine):
            if stage is not None:
                stage.check_supervision(lexicon, matrix)

    def pairs_at_a_time(self, max_memory: float | None) -> int:
        """Return the number of pairs of spaces to run in lock-step on a GPU. max_memory: in GiB."""
        return max(stage.pairs_at_a_time(max_memory) for stage in self.stages)

    def initial_state(self, problem: Problem) -> State:
        """Return the state before the first stage."""
        projected = any(stage.projects for stage in self.stages)
        return State(projected=projected, order=problem.views[0].order, stage=self.stages[0].name)

    def keys(self, context: Mapping[str, Any], seed: int) -> dict[str, str]:
        """Return a hash of everything that determines the state before each stage but the first, the latest first.

        context: all that matters besides the stages and the seed: input hashes, code version and device.
        """
        found: dict[str, str] = {}
        # Estimating an order samples reference words, so it depends on the seed.
        draws, parts = self.prepare.order != "given", [repr(self.prepare)]
        for stage, following in zip(self.stages, self.stages[1:], strict=False):
            draws = draws or stage.uses_seed
            parts.append(repr(stage))
            text = json.dumps([context, parts, seed if draws else None], sort_keys=True)
            found[following.name] = hashlib.sha256(text.encode()).hexdigest()
        return dict(reversed(found.items()))

    def run(
        self,
        problems: Sequence[Problem],
        states: Sequence[State],
        monitors: Sequence[Monitor],
        cache: StageCache | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> list[State]:
        """Return the states of several problems after all stages, which run from the stage of the first state on.

        cache: shares states with other fits, under `keys`.
        """
        current, like = list(states), problems[0].views[0].x
        for number, stage in enumerate(self.stages):
            if current[0].stage != stage.name:
                continue
            with timed(monitors, stage.name, like):
                current = stage.run_many(problems, current, monitors)
            following = self.stages[number + 1].name if number + 1 < len(self.stages) else FINISHED
            current = [state.entering(following) for state in current]
            for state, monitor in zip(current, monitors, strict=True):
                monitor.save(state, now=True)
            if cache is not None and keys is not None and following in keys:
                cache.save(keys[following], current[0], monitors[0].seconds)
        return [
            replace(unprojected(problem, state), tensors={}, values={})
            for problem, state in zip(problems, current, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Choice(Stage):
    """Run the initializer that `start` names."""

    name = "initialize"

    start: str = param("", "The initializer.", START)
    among: Mapping[str, Stage]

    def declaration(self, name: str, declared: Declaration) -> Declaration:
        """Return the declaration of `start` with the alternatives as its choices."""
        if name != "start":
            return declared
        *names, last = (stage.named(name) for name, stage in self.among.items())
        return replace(declared, help=f"The initializer: {', '.join(names)} or {last}.", choices=tuple(self.among))

    @property
    def chosen(self) -> Stage:
        """The chosen initializer."""
        return self.among[self.start]

    def check_supervision(self, lexicon: bool, matrix: bool) -> None:
        """Raise an InputError for a lexicon or a matrix that the chosen initializer does not use, or lacks."""
        self.chosen.check_supervision(lexicon, matrix)
        for name, argument, given in (("lexicon", "lexicon", lexicon), ("matrix", "start_matrix", matrix)):
            if given and self.start != name:
                raise InputError(f"{argument} was given but start={self.start!r} does not use it: set start={name!r}")
