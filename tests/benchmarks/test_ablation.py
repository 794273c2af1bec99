"""What the parts of the method bring: tables are those of the records, what is missing runs, made-up spaces are so."""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from benchmarks import ablation
from benchmarks.ablation import Problem
from benchmarks.common import Record, read_records
from benchmarks.systems import REAL_P1, TASKS
from qwp import Alignment, Embeddings, Lexicon
from qwp.judging.verdict import FAILED, SUCCEEDED, UNDECIDED
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close, assert_same
from tests.problems import Array, rotation
from tests.problems import space as made_up

Key = tuple[str, str, str, int]


def key(record: Record) -> Key:
    """What tells a record from others."""
    return record["suite"], record["task"], record["label"], record["seed"]


def cells(table: str, label: str) -> list[str]:
    """The row of a table that begins with a label."""
    [row] = [line for line in table.splitlines() if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


# --------------------------------------------------------------------------- the document


def between_the_markers(text: str) -> str:
    """What stands between the two markers of a document, each of which is there once."""
    before, begin, rest = text.partition("<!-- tables -->\n")
    inside, end, after = rest.partition("<!-- /tables -->")
    assert begin
    assert end
    assert "tables -->" not in before + inside + after
    return inside


def test_the_document_holds_exactly_the_tables_of_the_records() -> None:
    made = ablation.tables(read_records(ablation.RESULTS))
    assert between_the_markers(ablation.DOCUMENT.read_text()) == made


def test_every_suite_has_its_table_in_the_document() -> None:
    text = between_the_markers(ablation.DOCUMENT.read_text())
    recorded = {record["suite"] for record in read_records(ablation.RESULTS)}
    assert recorded == set(ablation.SUITES)
    # Two of the loop's, two of the coresets', one of each other.
    assert text.count("\n### ") + text.startswith("### ") == len(ablation.SUITES) + 2


def test_no_run_is_recorded_twice() -> None:
    counts = Counter(map(key, read_records(ablation.RESULTS)))
    assert [run for run, count in counts.items() if count > 1] == []


# --------------------------------------------------------------------------- what is run


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read and nothing is fitted; the records have a key and figures that nobody looks at."""
    words = [f"w{i}" for i in range(40)]
    spaces = Embeddings(words, made_up(40, 5, 0).astype("f4"))

    def record(suite: str, problem: Problem, label: str, seed: int, *_: Any, **__: Any) -> Record:
        return {"suite": suite, "task": problem.name, "label": label, "seed": seed}

    class Nothing:
        """An alignment that finds nothing."""

        tgt = spaces

        def on(self, device: str) -> Nothing:
            return self

        def induce(self, **_: Any) -> list[Any]:
            return []

    monkeypatch.setattr(ablation, "space", lambda *_, **__: spaces)
    monkeypatch.setattr(ablation, "gold", lambda *_: Lexicon((("w1", "w2"), ("w3", "w4"))))
    monkeypatch.setattr(ablation, "timed_record", record)
    monkeypatch.setattr(ablation, "before_and_after", record)
    monkeypatch.setattr(ablation, "fitted", lambda *_, **__: Nothing())
    monkeypatch.setattr(ablation, "normalised", lambda *_: None)
    monkeypatch.setattr(ablation, "refined", lambda *_: None)
    monkeypatch.setattr(ablation, "p1", lambda *_: {"p1": 1.0})
    monkeypatch.setattr(ablation, "calibration_error", lambda *_: (0.0, []))


def refused(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was done before")


@pytest.mark.usefixtures("stubs")
@pytest.mark.parametrize("suite", ablation.SUITES)
def test_what_was_done_is_not_done_again(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = partial(ablation.SUITES[suite], "cpu")
    everything = [key(found) for found in run(set())]
    assert len(everything) == len(set(everything)) > 5
    assert {name for name, *_ in everything} == {suite}
    # What is missing is run, in the same order, and no more.
    missing = everything[::7]
    assert [key(found) for found in run(set(everything) - set(missing))] == missing
    # The same task in another suite is another run.
    others = {("other", *rest) for _, *rest in everything}
    assert [key(found) for found in run(others)] == everything  # type: ignore[arg-type]
    for name in ("timed_record", "before_and_after", "fitted", "normalised", "refined", "p1"):
        monkeypatch.setattr(ablation, name, refused)
    assert list(run(set(everything))) == []


@pytest.mark.usefixtures("stubs")
def test_the_records_are_those_of_all_suites_and_no_others() -> None:
    wanted = {key(found) for suite in ablation.SUITES.values() for found in suite("cpu", set())}
    recorded = {key(record) for record in read_records(ablation.RESULTS)}
    assert sorted(recorded - wanted) == []
    assert sorted(wanted - recorded) == []


@pytest.mark.usefixtures("stubs")
def test_one_loop_serves_all_refinements_of_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(ablation, "fitted", lambda problem, seed, *_: asked.append((problem.name, seed)))
    found = list(ablation.refinement_suite("cpu", set()))
    assert len(found) == len(asked) * len(ablation.refinements())
    assert len(asked) == len(set(asked))


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    """`python -m benchmarks.ablation` in this process."""
    monkeypatch.setattr(sys, "argv", ["benchmarks.ablation", *map(str, arguments)])
    ablation.main()


def fake_suite(name: str, asked: list[int]) -> Callable[[str, ablation.Known], Iterator[Record]]:
    """Five runs that note what was run; the fourth of them is interrupted the first time."""

    def run(device: str, known: ablation.Known) -> Iterator[Record]:
        for seed in range(5):
            if (name, "novels en-es", "default", seed) not in known:
                asked.append(seed)
                if asked.count(3) == 1 and seed == 3:
                    raise KeyboardInterrupt
                yield final_record("novels en-es", "default", seed, 40.0 + seed)

    return run


def test_a_run_that_was_stopped_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(ablation, "SUITES", {"final": fake_suite("final", asked)} | dict.fromkeys(ALL_BUT_FINAL, None))
    monkeypatch.setattr(ablation, "BENCH", tmp_path)
    output = tmp_path / "new" / "records.jsonl"
    with pytest.raises(KeyboardInterrupt):
        command(monkeypatch, "final", "--output", output)
    assert [record["seed"] for record in read_records(output)] == [0, 1, 2]
    command(monkeypatch, "final", "--output", output)
    assert [record["seed"] for record in read_records(output)] == [0, 1, 2, 3, 4]
    assert asked == [0, 1, 2, 3, 3, 4]
    assert "42.00 ± 1.58 (40.00)" in capsys.readouterr().out
    command(monkeypatch, "final", "--output", output)
    assert asked == [0, 1, 2, 3, 3, 4]


ALL_BUT_FINAL = [suite for suite in ablation.SUITES if suite != "final"]


def test_the_tables_replace_those_of_the_document_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document, output = tmp_path / "accuracy.md", tmp_path / "records.jsonl"
    document.write_text("# Title ä\n\n<!-- tables -->\nold\n<!-- /tables -->\n\nthe end\n")
    records = [final_record("novels en-es", "default", seed, 40.0) for seed in range(2)]
    output.write_text("".join(json.dumps(record) + "\n" for record in records))
    monkeypatch.setattr(ablation, "DOCUMENT", document)
    monkeypatch.setattr(ablation, "SUITES", dict.fromkeys(ablation.SUITES, refused))
    for _ in range(2):
        command(monkeypatch, "--table", "--output", output)
        text = document.read_text()
        assert text.startswith("# Title ä\n\n<!-- tables -->\n### The default")
        assert text.endswith("|\n<!-- /tables -->\n\nthe end\n")
        assert between_the_markers(text) == ablation.tables(records)


@pytest.mark.parametrize(
    ("arguments", "message"), [(["finale"], "unknown suites finale"), (["final"], "no benchmark vectors in")]
)
def test_what_cannot_run_is_explained(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setattr(ablation, "BENCH", tmp_path / "nowhere")
    with pytest.raises(SystemExit) as stopped:
        command(monkeypatch, *arguments, "--output", tmp_path / "records.jsonl")
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "records.jsonl").exists()


def test_settings_are_chosen_on_the_training_split_and_scored_on_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ablation, "gold", lambda file: asked.append(file))

    def files(problems: Iterable[Problem]) -> set[str]:
        asked.clear()
        for problem in problems:
            for lexicon in (problem.forward, problem.backward):
                if lexicon is not None:
                    lexicon()
        return set(asked)

    choosing = files([*ablation.development_problems(), *ablation.odd_problems()])
    assert choosing
    assert all(file.startswith("muse/") and file.endswith(".0-5000.txt") for file in choosing)
    final = files(ablation.of_task(task) for task in TASKS)
    assert len(final) == len(TASKS)
    assert not final & choosing
    # Each way has the dictionary of that way.
    assert files([ablation.development("novels en-fr", "en-fr")]) == {
        "muse/en-fr.0-5000.txt",
        "muse/fr-en.0-5000.txt",
    }
    assert ablation.back("en-fr") == "fr-en"


def test_changes_of_the_refinement_change_one_thing() -> None:
    kinds = ablation.refinements()
    default = kinds["**default**"]
    for label, kind in kinds.items():
        assert label == "**default**" or kind != default, label
    assert all(one != two for one, two in combinations(kinds.values(), 2))


# --------------------------------------------------------------------------- made-up spaces


@pytest.fixture(scope="session")
def original() -> Embeddings:
    """200 words of 12 dimensions, no two rows of the same length."""
    rows = made_up(200, 12, 3) * np.linspace(0.5, 2.0, 200)[:, None]
    return Embeddings([f"w{i}" for i in range(200)], rows.astype("f4"))


def cosines(vectors: Array) -> Array:
    rows = vectors.astype("f8") / np.linalg.norm(vectors.astype("f8"), axis=1, keepdims=True)
    return np.asarray(rows @ rows.T)


def extents(vectors: Array) -> Array:
    """Variances along the principal axes, largest first."""
    rows = vectors.astype("f8")
    return np.asarray(np.linalg.eigvalsh(rows.T @ rows / len(rows))[::-1])


def test_noise_takes_the_rows_it_names_and_keeps_their_lengths(original: Embeddings) -> None:
    for share, count in ((0.1, 20), (0.3, 60)):
        rows = ablation.noisy_rows(original, share, 5)
        assert len(set(rows.tolist())) == count
        found = ablation.with_noise(original, share, 5)
        kept = np.setdiff1d(np.arange(200), rows)
        assert_same(found.vectors[kept], original.vectors[kept])
        before, after = (np.linalg.norm(space.vectors[rows], axis=1) for space in (original, found))
        assert_close(after, before, rtol=1e-5)
        # Nothing of the old vectors is left, and no two new ones are alike.
        alike = np.diag(cosines(np.vstack([found.vectors[rows], original.vectors[rows]]))[:count, count:])
        assert abs(float(alike.mean())) < 0.2
        assert np.abs(cosines(found.vectors[rows]) - np.eye(count)).max() < 0.99
        assert found.words == original.words
        assert found.vectors.dtype == np.float32
    assert_same(ablation.with_noise(original, 0.1, 5).vectors, ablation.with_noise(original, 0.1, 5).vectors)
    assert set(ablation.noisy_rows(original, 0.1, 6).tolist()) != set(ablation.noisy_rows(original, 0.1, 5).tolist())


def test_shuffled_words_keep_their_vectors(original: Embeddings) -> None:
    found = ablation.shuffled(original, 4)
    assert found.words != original.words
    assert sorted(found.words) == sorted(original.words)
    for word, vector in zip(found.words, found.vectors, strict=True):
        assert_same(vector, original.vectors[original.index[word]])
    assert ablation.shuffled(original, 4).words == found.words != ablation.shuffled(original, 5).words
    # Not a word stays where it was, or next to none.
    assert sum(a == b for a, b in zip(found.words, original.words, strict=True)) < 10


def test_mixed_columns_keep_their_values_and_no_word_its_vector(original: Embeddings) -> None:
    before = original.vectors.copy()
    found = ablation.with_mixed_columns(original, 1)
    assert_same(np.sort(found.vectors, axis=0), np.sort(original.vectors, axis=0))
    assert found.words == original.words
    assert not (found.vectors == original.vectors).all(axis=1).any()
    # Each column by itself: rows are not just in another order.
    assert not {tuple(row) for row in found.vectors.tolist()} & {tuple(row) for row in original.vectors.tolist()}
    assert_same(original.vectors, before)


def test_a_spectrum_to_the_power_of_one_is_a_turned_space(original: Embeddings) -> None:
    found = ablation.with_spectrum(original)
    assert found.words == original.words
    assert found.vectors.dtype == np.float32
    assert_close(found.vectors @ found.vectors.T, original.vectors @ original.vectors.T, atol=1e-5)
    # In a basis of its own: neither the given one nor the principal axes.
    assert np.abs(found.vectors - original.vectors).max() > 0.1
    covariance = found.vectors.T @ found.vectors / len(found)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 0.01


@pytest.mark.parametrize("power", [0.3, 0.5, 2.0])
def test_a_spectrum_has_its_extents_raised_to_the_power(original: Embeddings, power: float) -> None:
    found = ablation.with_spectrum(original, power=power)
    assert_close(extents(found.vectors), extents(original.vectors) ** power, rtol=1e-4)
    assert found.vectors.shape == original.vectors.shape
    # Near words stay near, though not as near as they were.
    upper = np.triu_indices(200, 1)
    before, after = cosines(original.vectors)[upper], cosines(found.vectors)[upper]
    assert np.abs(before - after).max() > 0.05
    assert float(spearmanr(before, after)[0]) > 0.8


@pytest.mark.parametrize(("dim", "words"), [(5, None), (5, 80), (None, 80)])
def test_a_spectrum_of_fewer_dimensions_and_words_keeps_the_first_of_them(
    original: Embeddings, dim: int | None, words: int | None
) -> None:
    found = ablation.with_spectrum(original, dim=dim, words=words)
    n, d = words or 200, dim or 12
    assert found.vectors.shape == (n, d)
    assert found.words == original.words[:n]
    # The largest axes of the words that are left.
    assert_close(extents(found.vectors), extents(original.vectors[:n])[:d], rtol=1e-4)


def test_the_first_words_of_both_sides(original: Embeddings) -> None:
    shorter = Embeddings([f"t{i}" for i in range(30)], original.vectors[:30])
    src, tgt = ablation.first(50)(original, shorter)
    assert src.words == original.words[:50]
    assert_same(src.vectors, original.vectors[:50])
    assert tgt.words == shorter.words


def test_bent_leaves_the_source_side_alone(original: Embeddings) -> None:
    src, tgt = ablation.bent(2.0)(original, original)
    assert src is original
    assert_same(tgt.vectors, ablation.with_spectrum(original, power=2.0).vectors)


def test_noise_in_place_of_all_vectors(original: Embeddings) -> None:
    found = ablation.gaussian(original, 2)
    assert found.words == original.words
    assert found.vectors.shape == original.vectors.shape
    assert found.vectors.dtype == np.float32
    assert abs(float(found.vectors.mean())) < 0.1
    assert float(found.vectors.std()) == pytest.approx(1.0, abs=0.05)
    assert np.abs(np.corrcoef(found.vectors.ravel(), original.vectors.ravel())[0, 1]) < 0.1


# --------------------------------------------------------------------------- scoring


@pytest.fixture(params=["two maps", "one map"])
def either(request: pytest.FixtureRequest, aligned: Alignment) -> Alignment:
    """An alignment of both kinds."""
    if request.param == "two maps":
        return aligned
    src_side = replace(aligned.src_side, map=rotation(12, 2).astype("f4"))
    return replace(aligned, src_side=src_side, tgt_side=replace(aligned.tgt_side, map=None))


def test_turned_twice_is_the_same_alignment(either: Alignment) -> None:
    again = ablation.turned(ablation.turned(either))
    assert again.src is either.src
    assert again.tgt is either.tgt
    assert again.src_side.normalization is either.src_side.normalization
    assert again.tgt_side.normalization is either.tgt_side.normalization
    assert_same(again.src_map, either.src_map)
    assert_same(again.tgt_map, np.eye(12) if either.tgt_map is None else either.tgt_map)
    for side in ("src", "tgt"):
        assert_same(again.mapped(side), either.mapped(side))
    assert again.induce() == either.induce()


def test_turned_translates_the_other_way(either: Alignment) -> None:
    turned = ablation.turned(either)
    words = either.tgt.words[:30]
    expected = either.translate(words, k=3, side="tgt")
    for word, best in turned.translate(words, k=3).items():
        assert [found.word for found in best] == [found.word for found in expected[word]]
        assert_close([found.score for found in best], [found.score for found in expected[word]], atol=1e-5)


def test_scores_of_both_ways_and_their_mean(aligned: Alignment) -> None:
    # Source words as their translations are right but for the ten that are given wrong ones on purpose.
    right = {pair.src: pair.tgt for pair in aligned.induce()}
    words = list(right)[:100]
    forward = Lexicon(tuple((word, right[word]) for word in words[10:]) + tuple((word, "t399") for word in words[:10]))
    backward = Lexicon(tuple((right[word], word) for word in words[:40]))
    problem = Problem("made up", lambda: (aligned.src, aligned.tgt), lambda: forward, lambda: backward)
    found = ablation.p1(aligned, problem, "cpu")
    assert found["forward"] == pytest.approx(90.0)
    assert found["backward"] == pytest.approx(100.0)
    assert found["p1"] == pytest.approx(95.0)
    assert (found["forward_covered"], found["backward_covered"]) == (100, 40)
    one_way = ablation.p1(aligned, replace(problem, backward=None), "cpu")
    assert one_way["p1"] == one_way["forward"] == pytest.approx(90.0)
    assert "backward" not in one_way
    # Nothing to score by, nothing said.
    assert ablation.p1(aligned, replace(problem, forward=None, backward=None), "cpu") == {}


def test_refined_alignments_are_those_of_a_whole_fit() -> None:
    src, tgt = planted_embeddings(250, noise=0.4)
    problem = Problem("planted", lambda: (src, tgt))
    options = {**QUICK, "start": "profiles", "epochs": 1, "steps": 3}
    begun = ablation.fitted(problem, 0, "cpu", {**options, "refine": 0})
    assert begun.tgt_map is None
    found = ablation.refined(begun, ablation.normalised(begun, "cpu"), ablation.refinements()["**default**"])
    whole = ablation.fitted(problem, 0, "cpu", options)
    assert found.tgt_map is not None
    assert whole.tgt_map is not None
    assert_close(found.src_map @ found.tgt_map.T, whole.src_map @ whole.tgt_map.T, atol=1e-3)
    assert found.src is begun.src


# --------------------------------------------------------------------------- calibration


def test_perfect_predictions_have_no_calibration_error() -> None:
    said = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    error, bins = ablation.calibration_error(said, said.copy())
    assert error == 0.0
    assert bins == [[2, 0.0, 0.0], [3, 1.0, 1.0]]
    # Right as often as was said, in every bin.
    said = np.repeat([0.25, 0.75], 400)
    right = np.concatenate([np.arange(400) % 4 == 0, np.arange(400) % 4 != 0]).astype(np.float64)
    error, bins = ablation.calibration_error(said, right)
    assert error == pytest.approx(0.0, abs=1e-12)
    assert_close(bins, [[400, 0.25, 0.25], [400, 0.75, 0.75]])


@pytest.mark.parametrize("confidence", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_constant_predictions_are_off_by_their_distance_from_the_share(confidence: float) -> None:
    right = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    error, bins = ablation.calibration_error(np.full(5, confidence), right)
    assert error == pytest.approx(abs(confidence - 0.6))
    [[n, said, share]] = bins
    assert n == 5
    assert said == pytest.approx(confidence)
    assert share == pytest.approx(0.6)


def test_bins_count_by_their_words() -> None:
    # Three words 0.2 above the truth and one 0.1 below it: errors do not cancel out.
    said = np.array([0.2, 0.2, 0.2, 0.9])
    error, bins = ablation.calibration_error(said, np.array([0.0, 0.0, 0.0, 1.0]))
    assert error == pytest.approx((3 * 0.2 + 0.1) / 4)
    assert [n for n, *_ in bins] == [3, 1]
    # As predictions that are always sure and always wrong.
    assert ablation.calibration_error(np.ones(7), np.zeros(7))[0] == 1.0


def test_a_random_sample_of_a_calibrated_model_is_near_zero() -> None:
    rng = np.random.default_rng(0)
    said = rng.random(20_000)
    right = (rng.random(20_000) < said).astype(np.float64)
    error, bins = ablation.calibration_error(said, right)
    assert error < 0.02
    assert len(bins) == ablation.BINS
    assert sum(n for n, *_ in bins) == 20_000
    assert ablation.calibration_error(said**2, right)[0] > 0.1


# --------------------------------------------------------------------------- tables


def final_record(task: str, label: str, seed: int, p1: float, verdict: str = SUCCEEDED) -> Record:
    about = {"verdict": verdict, "ratio": 2.0, "real": True, "seconds": 2.0 + seed, "forward_covered": 1234}
    return {"suite": "final", "task": task, "label": label, "seed": seed, "p1": p1, **about}


def test_the_final_table_shows_mean_spread_and_worst_seed() -> None:
    scores = [40.0, 43.5, 38.25]
    rows = [final_record("novels en-es", "default", seed, score) for seed, score in enumerate(scores)]
    rows[2]["verdict"] = FAILED
    rows += [final_record("novels en-es", "orthogonal map", seed, 30.0 + seed) for seed in range(2)]
    rows += [final_record("zhang es-en", "default", seed, 70.0) for seed in range(2)]
    table = ablation.final_table(rows)
    expected = f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} (38.25)"
    assert cells(table, "novels en-es") == [
        "novels en-es",
        expected,
        "2 of 3",
        "30.50 ± 0.71 (30.00)",
        "2 of 2",
        "1,234",
        "3.0",
    ]
    # No orthogonal map where none was asked for; a single seed has no spread.
    assert cells(table, "zhang es-en") == ["zhang es-en", "70.00 ± 0.00 (70.00)", "2 of 2", "-", "-", "1,234", "2.5"]
    assert cells(ablation.final_table(rows[:1]), "novels en-es")[1:5] == ["-"] * 4


def judged(p1: float | None, verdict: str, ratio: float, *, real: bool = True, seed: int = 0) -> Record:
    figures = {} if p1 is None else {"p1": p1}
    return {"task": f"task of {ratio}", "seed": seed, "verdict": verdict, "ratio": ratio, "real": real, **figures}


def test_the_verdict_table_counts_what_was_wrong() -> None:
    rows = [
        judged(50.0, SUCCEEDED, 2.5),
        judged(REAL_P1, SUCCEEDED, 1.4),
        judged(45.0, FAILED, 1.1),  # a false alarm
        judged(0.5, SUCCEEDED, 1.3),  # a failure that was missed
        judged(None, SUCCEEDED, 1.2, real=False),  # nothing was there to be found
        judged(REAL_P1 - 0.01, FAILED, 0.9),
        judged(None, FAILED, 1.0, real=False),
    ]
    table = ablation.verdict_table(rows)
    assert table.startswith("7 runs, 3 wrong.")
    assert "Ratios of real alignments: 1.10 and more; of others: 1.30 and less." in table
    assert cells(table, "real (P@1 of 10 or more)")[1:] == ["2", "1"]
    assert cells(table, "not real")[1:] == ["2", "2"]
    assert [line for line in table.splitlines() if line.startswith("- ")] == [
        "- task of 1.1, seed 0: P@1 45.0, ratio 1.10, said failed",
        "- task of 1.3, seed 0: P@1 0.5, ratio 1.30, said succeeded",
        "- task of 1.2, seed 0: P@1 -, ratio 1.20, said succeeded",
    ]


def test_a_verdict_that_is_right_every_time_has_no_list() -> None:
    rows = [judged(50.0, SUCCEEDED, 2.5), judged(0.5, FAILED, 1.0)]
    table = ablation.verdict_table(rows)
    assert table.startswith("2 runs, 0 wrong. Ratios of real alignments: 2.50 and more; of others: 1.00 and less.")
    assert "\n- " not in table
    # Without one of the two kinds there is nothing to compare.
    assert "Ratios" not in ablation.verdict_table(rows[:1])
    # No answer is not the right one where something was found.
    assert ablation.verdict_table([judged(50.0, UNDECIDED, 2.5)]).startswith("1 runs, 1 wrong.")


def test_labels_by_tasks_with_their_means() -> None:
    def record(task: str, label: str, seed: int, p1: float) -> Record:
        return {"task": task, "label": label, "seed": seed, "p1": p1}

    rows = [record("a", "x", 0, 10.0), record("a", "x", 1, 20.0), record("b", "x", 0, 40.0), record("a", "y", 0, 7.0)]
    table = ablation.label_by_task(rows)
    assert table.splitlines()[0] == "|  | a | b | mean |"
    # Tasks count alike, however many seeds they have.
    assert cells(table, "x") == ["x", "15.0", "40.0", "27.50"]
    assert cells(table, "y")[:3] == ["y", "7.0", "-"]
    # Of one task there is no mean.
    alone = ablation.label_by_task([row for row in rows if row["task"] == "a"])
    assert alone.splitlines()[0] == "|  | a |"
    assert cells(alone, "x") == ["x", "15.0"]


def test_coresets_by_their_size() -> None:
    kind, other = list(ablation.CORESETS)[:2]
    rows = [
        {"label": f"{kind}, k={k}", "task": task, "seed": 0, "before": k / 100 + place, "after": 50.0}
        for k in ablation.KS
        for place, task in enumerate("ab")
    ]
    table = ablation.coreset_table(rows, "before")
    assert cells(table, kind) == [kind, *(f"{k / 100 + 0.5:.2f}" for k in ablation.KS)]
    assert cells(table, other) == [other, *["-"] * len(ablation.KS)]
    assert cells(ablation.coreset_table(rows, "after"), kind)[1:] == ["50.00"] * len(ablation.KS)


def test_the_other_tables() -> None:
    starts = [
        {"task": "a", "label": start, "seed": 0, "p1": p1, "verdict": verdict}
        for start, p1, verdict in (("auto", 40.0, SUCCEEDED), ("profiles", 1.0, FAILED))
    ]
    assert cells(ablation.start_table(starts), "a") == ["a", "40.0", "1.0", "-", "succeeded"]
    final = [final_record("novels en-es", "default", seed, 40.0 + seed) for seed in range(2)]
    robust = [
        {"task": "novels en-es", "label": "noise", "seed": seed, "p1": p1, "verdict": verdict}
        for seed, (p1, verdict) in enumerate([(30.0, SUCCEEDED), (5.0, FAILED)])
    ]
    table = ablation.robust_table(robust, final)
    assert cells(table, "as they are") == ["as they are", "40.50", "40.00", "-"]
    assert cells(table, "noise") == ["noise", "17.50", "5.00", "1 of 2"]
    calibration = [
        {"task": "novels en-es", "ece": 0.0321, "bins": [[12, 0.1, 0.05], [30, 0.9, 0.875]]},
        {"task": "zhang es-en", "ece": 0.1, "bins": [[42, 0.3, 0.2]]},
    ]
    table = ablation.calibration_table(calibration)
    assert cells(table, "novels en-es") == ["novels en-es", "0.032"]
    assert cells(table, "zhang es-en") == ["zhang es-en", "0.100"]
    assert cells(table, "12") == ["12", "0.10", "0.05"]
    assert "| 42 |" not in table


def test_suites_without_records_have_no_table() -> None:
    assert ablation.tables([]) == "\n"
    rows = [final_record("novels en-es", "default", seed, 40.0) for seed in range(2)]
    text = ablation.tables(rows)
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "### The default on all pairs, five seeds",
    ]


@pytest.mark.slow
@pytest.mark.bench
def test_a_problem_runs_from_the_files_to_the_record(bench: Path) -> None:
    problem = ablation.of_task(TASKS[0], 2000)
    found = ablation.timed_record("verdict", problem, "default", 0, "cpu", {}, method="identical")
    assert key(found) == ("verdict", "zhang es-en, 2000 words", "default", 0)
    assert found["verdict"] == SUCCEEDED
    assert found["p1"] == found["forward"] > 70
    assert found["real"] is True
    assert set(found["stages"]) >= {"prepare", "refine", "verdict"}
