"""The refinement as a part of methods: their parameters for it, and how it is reported and resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.maps.procrustes import Maps
from qwp.maps.refinement import Anchors, RefineSettings, RoundFigures, refine
from qwp.methods.base import Aligner
from qwp.methods.run import Run, timed


@dataclass(kw_only=True, eq=False, repr=False)
class RefinedAligner(Aligner, RefineSettings):
    """A method that finds a first map of the source side and improves it by CSLS refinement."""

    def check_together(self) -> None:
        """A re-weighted map comes from a round of refinement."""
        super().check_together()
        default = self.parameters()["map"].default
        if self.refine == 0 and self.map == "reweighted" and default != self.map:
            raise InputError(
                "map='reweighted' is fitted to the pairs of a refinement round, but refine=0: set refine=1"
            )

    def anchors(self, run: Run) -> Anchors | None:
        """Pairs that every round has in its dictionary. A method that knows some says which."""
        return None

    def further_rounds(self, run: Run) -> int:
        """How many rounds may follow those of the settings, as long as they gain."""
        return 0

    def refined_from(self, run: Run, initial_map: Callable[[], Array]) -> Maps:
        """The maps after all rounds. initial_map: finds the map (d, d) they begin with, unless that was done before."""
        state = run.resumed("refine")
        if state is not None:
            tgt = state.tensors.get("tgt_map")
            maps = Maps(arrays.asarray(state.map, run.x), None if tgt is None else arrays.asarray(tgt, run.x))
            values = state.values
            if values.get("refined", False):
                return maps
            return self.refined(run, maps, state.done, values.get("dewhiten"), reached=values.get("csls_per_word", 0.0))
        maps = Maps(initial_map())
        run.checkpoint("refine", 0, maps.src, now=True)
        return self.refined(run, maps)

    def refined(
        self,
        run: Run,
        maps: Maps,
        first_round: int = 0,
        dewhiten: float | None = None,
        *,
        reached: float = 0.0,
        anchors: Anchors | None = None,
    ) -> Maps:
        """The maps after the rounds that follow number `first_round`, each reported and kept.

        dewhiten: what those rounds chose, where they had to; reached: the CSLS for each word that the last of them
        found. anchors: in place of those of the method, for rounds that are made besides; nothing is kept of these, so
        that a run that is interrupted in them knows what was before.
        """
        settings = RefineSettings.of(self)
        if not self.ordered:  # few of both sides share hardly any counterparts
            settings = replace(settings, refine_first_words=0)
        if 0 < settings.choosing_round <= first_round:
            settings = replace(settings, dewhiten=dewhiten)

        def after(figures: RoundFigures, refined: Maps) -> None:
            values = asdict(figures)
            done, total, last = (values.pop(name) for name in ("round", "n_rounds", "last"))
            run.report("refine", done, total, values)
            if anchors is not None:
                return
            tgt_map = {} if refined.tgt is None else {"tgt_map": refined.tgt}
            known = {"dewhiten": figures.dewhiten, "csls_per_word": figures.csls_per_word, "refined": last}
            run.checkpoint("refine", done, refined.src, tensors=tgt_map, values=known, now=True)

        with timed([run], "refine"):
            return refine(
                run.x,
                run.y,
                maps,
                settings,
                first_round=first_round,
                anchors=anchors or self.anchors(run),
                more=self.further_rounds(run) if settings.refine else 0,
                reached=reached,
                callback=after,
            )
