"""The refinement as a part of a method: from a first map that is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from qwp import InputError, arrays
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.maps.refinement import RefineSettings, refine
from qwp.methods.refined import RefinedAligner
from qwp.methods.run import Progress, Run
from qwp.results.checkpoints import Checkpoint
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.methods.cases import normalised
from tests.problems import planted, rotation

OPTIONS: dict[str, Any] = {"threads": 1, "dtype": "float64", "refine": 3, "refine_words": 150}
TWO_SIDED: dict[str, Any] = {"refine_weights": "csls", "refine_map": "reweighted", "map": "reweighted"}
asked: list[str] = []


@dataclass(kw_only=True, eq=False, repr=False)
class FromTheAnswer(RefinedAligner):
    """Begins with the planted map; counts how often it is asked for it."""

    method: ClassVar[str] = "answer"
    summary: ClassVar[str] = "the planted map"
    paper: ClassVar[str] = "none"

    def find_maps(self, run: Run) -> Maps:
        """The planted map, then the rounds."""

        def initial_map() -> Any:
            asked.append("first map")
            return arrays.asarray(planted(200, d=12, noise=0.4).w, run.x)

        return self.refined_from(run, initial_map)


@dataclass(kw_only=True, eq=False, repr=False)
class FromAfar(RefinedAligner):
    """Begins far from the planted map and goes on as long as the rounds gain."""

    method: ClassVar[str] = "afar"
    summary: ClassVar[str] = "rounds from afar"
    paper: ClassVar[str] = "none"

    def further_rounds(self, run: Run) -> int:
        """Twenty."""
        return 20

    def find_maps(self, run: Run) -> Maps:
        """A map halfway to the planted one, then the rounds."""
        halfway = planted(200, d=12).w + rotation(12, 7)
        return self.refined_from(run, lambda: arrays.asarray(host(polar_svd(halfway)), run.x))


def test_the_rounds_begin_with_the_first_map_and_are_reported() -> None:
    events: list[Progress] = []
    aligner = FromTheAnswer(**OPTIONS).fit(*planted_embeddings(200, noise=0.4), progress=events.append)
    settings = RefineSettings(refine=3, refine_words=150)
    expected = refine(*normalised(aligner.alignment_), Maps(planted(200, d=12, noise=0.4).w), settings)
    assert_close(aligner.map_, expected.src, atol=1e-12)
    assert aligner.alignment_.tgt_map is None
    records = [record for record in aligner.alignment_.history if record["stage"] == "refine"]
    assert [record["step"] for record in records] == [1, 2, 3]
    assert {record["n_words"] for record in records} == {150}
    assert all(0 < record["n_pairs"] <= 150 for record in records)
    assert [(e.done, e.total) for e in events if e.stage == "refine"] == [(1, 3), (2, 3), (3, 3)]
    assert aligner.alignment_.provenance.seconds["refine"] > 0


def test_no_rounds_leave_the_first_map() -> None:
    aligner = FromTheAnswer(**{**OPTIONS, "refine": 0}).fit(*planted_embeddings(200, noise=0.4))
    assert_same(aligner.map_, planted(200, d=12, noise=0.4).w)


@pytest.mark.parametrize(("options", "stop"), [({}, 1), (TWO_SIDED, 3)], ids=["one-sided", "two-sided"])
def test_an_interrupted_refinement_goes_on_with_both_maps(options: dict[str, Any], stop: int, tmp_path: Path) -> None:
    spaces = planted_embeddings(200, noise=0.4)
    aligner = FromTheAnswer(**OPTIONS, **options)
    whole = aligner.fit(*spaces).alignment_

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == ("refine", stop):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aligner.fit(*spaces, progress=interrupt, checkpoint=Checkpoint(tmp_path))
    asked.clear()
    events: list[Progress] = []
    checkpoint = Checkpoint(tmp_path, resume=True)
    resumed = aligner.fit(*spaces, progress=events.append, checkpoint=checkpoint).alignment_
    assert asked == []
    # The round that was interrupted had been reported, and not yet saved.
    assert [event.done for event in events if event.stage == "refine"] == list(range(stop, 4))
    for side in ("src", "tgt"):
        assert_same(resumed.mapped(side), whole.mapped(side))
    assert (resumed.tgt_map is None) == (whole.tgt_map is None) == (not options)
    assert (orthogonality_error(host(resumed.src_map)) < 1e-9) == (not options)


@pytest.mark.parametrize("stop", ["in further rounds", "after them"])
def test_a_run_interrupted_in_further_rounds_or_after_them_ends_alike(stop: str, tmp_path: Path) -> None:
    # Far from the answer, so that more than one further round gains.
    spaces = planted_embeddings(200, noise=0.9)
    aligner = FromAfar(**{**OPTIONS, **TWO_SIDED, "refine": 1, "refine_words": 0})
    events: list[Progress] = []
    whole = aligner.fit(*spaces, progress=events.append).alignment_
    made = [event.done for event in events if event.stage == "refine"]
    assert made == list(range(1, len(made) + 1))
    assert 2 < len(made) < 21

    def interrupt(event: Progress) -> None:
        where = ("refine", 3) if stop == "in further rounds" else ("verdict", event.done)
        if (event.stage, event.done) == where:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aligner.fit(*spaces, progress=interrupt, checkpoint=Checkpoint(tmp_path))
    events.clear()
    resumed = aligner.fit(*spaces, progress=events.append, checkpoint=Checkpoint(tmp_path, resume=True)).alignment_
    assert [e.done for e in events if e.stage == "refine"] == (made[2:] if stop == "in further rounds" else [])
    for side in ("src", "tgt"):
        assert_same(resumed.mapped(side), whole.mapped(side))


def test_a_reweighted_map_needs_a_round() -> None:
    message = "map='reweighted' is fitted to the pairs of a refinement round, but refine=0: set refine=1"
    with pytest.raises(InputError, match=message):
        FromTheAnswer(refine=0, map="reweighted").validate()
    FromTheAnswer(refine=1, map="reweighted").validate()

    @dataclass(kw_only=True, eq=False, repr=False)
    class ReweightedByDefault(FromTheAnswer):
        map: str = "reweighted"

    # Where it is the default, nobody asked for it: without rounds there is none.
    ReweightedByDefault(refine=0).validate()
    assert np.isfinite(ReweightedByDefault(threads=1, refine=0).fit(*planted_embeddings(200, noise=0.4)).map_).all()
