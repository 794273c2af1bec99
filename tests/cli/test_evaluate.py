from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qwp import Alignment, Lexicon, evaluate, evaluate_counterparts
from qwp.search.spelling import LABEL, Spelling
from tests.cli.conftest import Problem, qwp, write


def test_scores_of_an_alignment_equal_the_library(problem: Problem, aligned: Path) -> None:
    ran = qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--json", "--retrieval", "nn,csls,softmax")
    assert ran.code == 0
    expected = evaluate(Alignment.load(aligned), Lexicon.load(problem.lexicon), retrieval=("nn", "csls", "softmax"))
    assert ran.json["scores"] == expected.to_dict()["scores"]
    assert ran.json["coverage"]["covered_source_words"] == 300
    assert ran.json["coverage"]["source_words"] == 400
    assert ran.json["scores"]["csls"]["covered"]["P@1"]["value"] > 0.9
    assert ran.json["lexicon"]["pairs"] == 400


def test_words_of_known_pairs_are_not_scored(problem: Problem, tmp_path: Path) -> None:
    lines = problem.lexicon.read_text("utf-8").splitlines(keepends=True)
    taught = tmp_path / "taught.txt"
    taught.write_text("".join(lines[:250]), "utf-8")
    out = tmp_path / "out"
    fit = ("align", problem.src, problem.tgt, "--method", "procrustes", "--lexicon", taught, "--verdict", "none")
    assert qwp(*fit, "--out", out).code == 0
    left = len(lines) - 250
    ran = qwp("evaluate", out, "--lexicon", problem.lexicon, "--json")
    expected = f"the fit was given pairs of 250 of its {len(lines)} source words: they are not scored, {left} are"
    assert expected in ran.err
    assert ran.json["coverage"]["source_words"] == left
    assert any(expected in text for text in ran.json["warnings"])
    ran = qwp("evaluate", out, "--lexicon", taught)
    assert ran.code == 2
    assert "the fit was given pairs of all of its 250 source words" in ran.err
    (out / "anchors.tsv").unlink()
    ran = qwp("evaluate", out, "--lexicon", problem.lexicon, "--json")
    assert ran.json["coverage"]["source_words"] == len(lines)
    assert "the fit was given known pairs, and its folder does not hold them" in ran.json["warnings"][0]


def test_limited_memory_gives_the_same_scores(problem: Problem, aligned: Path) -> None:
    plain, bounded = (
        qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--json", "--device", "cpu", *flags).json["scores"]
        for flags in ((), ("--max-memory", "0.001"))
    )
    assert plain == bounded


def test_a_missing_device_is_refused(problem: Problem, aligned: Path) -> None:
    ran = qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--device", "cuda:99")
    assert ran.code == 2
    assert "cuda:99" in ran.err


def test_the_table_explains_its_conventions(problem: Problem, aligned: Path) -> None:
    asked = ["evaluate", aligned, "--lexicon", problem.lexicon, "--format", "table"]
    ran = qwp(*asked)
    assert ran.code == 0
    for expected in (
        *("coverage: 300 of 400 source words (75.0 %), 300 of 400 pairs", "P@1", "P@5", "P@10", "MRR", "AP"),
        *("MAP (XLING)", "covered words", "all words", "95 % intervals", "csls (k=10)", "75.0"),
    ):
        assert expected in ran.out
    assert "intervals" not in qwp(*asked, "--bootstrap", 0).out


def test_tsv_has_a_line_for_each_measure_and_stderr_the_coverage(
    problem: Problem, aligned: Path, tmp_path: Path
) -> None:
    asked = ["evaluate", aligned, "--lexicon", problem.lexicon]
    ran, full = qwp(*asked), qwp(*asked, "--json").json
    header, *lines = [line.split("\t") for line in ran.out.splitlines()]
    assert header == ["retrieval", "out_of", "measure", "value", "low", "high"]
    assert {
        (method, words, name): f"{score['value']:.6f}"
        for method, scores in full["scores"].items()
        for words, measures in scores.items()
        for name, score in measures.items()
    } == {(method, words, name): value for method, words, name, value, _, _ in lines}
    assert "coverage: 300 of 400 source words (75.0 %)" in ran.err
    assert qwp(*asked, "--out", tmp_path / "scores.tsv").out == ""
    assert (tmp_path / "scores.tsv").read_text() == ran.out
    assert qwp(*asked, "--out", tmp_path / "scores.json").code == 0
    assert json.loads((tmp_path / "scores.json").read_text()) == full


def test_files_in_one_space(tmp_path: Path) -> None:
    # One-hot words: s<i> lies on t<i>, and the dictionary is right for three of its four words.
    src, tgt = write(tmp_path / "a.vec", "s", np.eye(4)), write(tmp_path / "b.npz", "t", np.eye(4))
    gold = tmp_path / "gold.csv"
    gold.write_text("t0,s0\nt1,s1\nt2,s2\nt3,s0\n")
    args = [
        "evaluate",
        "--src",
        src,
        "--tgt",
        tgt,
        "--lexicon",
        gold,
        "--json",
        "--retrieval",
        "nn",
        "--bootstrap",
        0,
    ]
    ran = qwp(*args, "--reverse")
    assert ran.code == 0
    # s0 has the golds t0 and t3, so three source words, all right.
    assert ran.json["scores"]["nn"]["covered"]["P@1"]["value"] == 1.0
    assert ran.json["coverage"]["pairs"] == 4
    fewer = qwp(*args, "--reverse", "--max-vocab", 2)
    assert fewer.json["coverage"]["covered_source_words"] == 2
    wrong_way = qwp(*args)
    assert wrong_way.code == 2
    assert "swap its columns" in wrong_way.err


def test_lower_case(tmp_path: Path) -> None:
    src, tgt = write(tmp_path / "a.vec", "s", np.eye(4)), write(tmp_path / "b.vec", "t", np.eye(4))
    gold = tmp_path / "gold.txt"
    gold.write_text("S0 T0\nS1 T1\n")
    args = ["evaluate", "--src", src, "--tgt", tgt, "--lexicon", gold]
    assert qwp(*args).code == 2
    assert qwp(*args, "--case", "lower", "--json").json["coverage"]["share"] == 1.0


def test_bad_input_is_explained(problem: Problem, aligned: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["{dir}"], "expected --lexicon FILE"),
        (["--lexicon", "{gold}"], "expected a folder, or both --src FILE and --tgt FILE"),
        (["--lexicon", "{gold}", "--src", "{src}"], "expected a folder, or both"),
        (["{dir}", "--lexicon", "{gold}", "--src", "{src}"], "expected one of them"),
        (["{dir}", "--lexicon", "{gold}", "--max-vocab", "3"], "--max-vocab 3 is for --src and --tgt"),
        (["{dir}", "--lexicon", "{gold}", "--input-format", "text"], "--input-format text is for --src and --tgt"),
        (
            ["--lexicon", "{gold}", "--src", "{src}", "--tgt", "{src}", "--input-format", "npz"],
            "damaged or truncated npz",
        ),
        (["{dir}", "--lexicon", "none.txt"], "none.txt does not exist"),
        (
            ["{dir}", "--lexicon", "{gold}", "--retrieval", "dot"],
            "'dot' is not known; expected one of nn, csls",
        ),
        (["{dir}", "--lexicon", "{gold}", "--case", "upper"], "--case upper is not known; expected one of keep, lower"),
        (["{dir}", "--lexicon", "{gold}", "--lexicon-format", "x"], "expected one of auto"),
        (["{dir}", "--lexicon", "{gold}", "--bootstrap", "-1"], "bootstrap=-1"),
        (["none", "--lexicon", "{gold}"], "none does not exist"),
        (["{gold}", "--lexicon", "{gold}"], "is a file"),
        (["{folder}", "--lexicon", "{gold}"], "holds no alignment.json"),
    ]
    for args, message in cases:
        names = {"dir": aligned, "gold": problem.lexicon, "src": problem.src, "folder": problem.folder}
        ran = qwp("evaluate", *(a.format(**names) for a in args), "--json")
        assert ran.code == 2
        assert message in ran.err
        assert message in ran.json["error"]["message"]


def test_spelling_has_its_own_row(problem: Problem, aligned: Path) -> None:
    ran = qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--spelling", "--json")
    assert ran.json["spelling"] == Spelling.weight
    assert list(ran.json["scores"]) == ["nn", "csls", LABEL]
    expected = evaluate(Alignment.load(aligned), Lexicon.load(problem.lexicon), spelling=True)
    assert ran.json["scores"] == expected.to_dict()["scores"]
    plain = qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--json").json
    assert plain["spelling"] == 0.0
    assert {name: ran.json["scores"][name] for name in plain["scores"]} == plain["scores"]
    text = qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--spelling", "--format", "table")
    assert LABEL in text.out
    assert "scores are csls + spelling" in text.err
    assert "spelling" not in qwp("evaluate", aligned, "--lexicon", problem.lexicon, "--format", "table").out


# --------------------------------------------------------------------------- several tasks


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, Path]:
    """Write one-hot vectors with s<i> on t<i>, and a file for each task."""
    rng = np.random.default_rng(0)
    names = {"src": write(tmp_path / "a.vec", "s", np.eye(6) + 0.2 * rng.random((6, 6)))}
    names["tgt"] = write(tmp_path / "b.vec", "t", np.eye(6) + 0.2 * rng.random((6, 6)))
    texts = {
        "gold": "s0 t0\ns1 t1\ns2 t2\n",
        "more": "s3 t3\ns4 t5\nx y\n",
        "similarity": "one\ttwo\tscore\ns0\tt0\t9\ns0\tt1\t1\ns2\tt2\t8\ns9\tt9\t1\n",
        "words": "s0 s1 3\ns1 s2 2\ns2 s3 1\nbroken\n",
        "analogies": ": first\ns0 s1 s2 s3\n: second\ns0 s1 s2 s9\n",
        "english": "s0 s1\ns2 s3\ns4\n",
        "spanish": "t0 t1\nt2 t3\nt4\n",
    }
    for name, content in texts.items():
        names[name] = tmp_path / f"{name}.txt"
        names[name].write_text(content)
    return names


def test_all_tasks_in_one_call(tasks: dict[str, Path]) -> None:
    asked = ["evaluate", "--src", tasks["src"], "--tgt", tasks["tgt"]]
    asked += ["--lexicon", tasks["gold"], "--lexicon", tasks["more"], "--similarity", tasks["similarity"]]
    asked += ["--similarity", f"src:{tasks['words']}", "--analogies", tasks["analogies"]]
    asked += ["--sentences", tasks["english"], tasks["spanish"], "--bootstrap", 50]
    found = qwp(*asked, "--json").json
    assert [each["lexicon"]["path"] for each in found["lexicons"]] == [str(tasks["gold"]), str(tasks["more"])]
    assert found["lexicons"][0]["scores"]["nn"]["covered"]["P@1"]["value"] == 1.0
    assert found["lexicons"][1]["coverage"]["covered_source_words"] == 2
    assert [(each["side"], each["skipped"]) for each in found["similarity"]] == [("cross", 0), ("src", 1)]
    assert found["similarity"][0]["coverage"]["covered_pairs"] == 3
    assert found["analogies"][0]["coverage"] == {"questions": 2, "covered_questions": 1, "share": 0.5}
    assert found["sentences"][0]["scores"]["tgt-src"]["csls"]["P@1"]["value"] == 1.0
    assert found["bootstrap"] == {"resamples": 50, "confidence": 0.95, "seed": 0}

    tsv = qwp(*asked)
    header, *lines = [line.split("\t") for line in tsv.out.splitlines()]
    assert header == [
        *("task", "file", "side", "part", "method", "out_of", "measure", "value", "low", "high", "covered", "total"),
    ]
    values = {tuple(line[:7]): line[7:] for line in lines}
    assert values["similarity", str(tasks["similarity"]), "cross", "", "cosine", "covered", "Spearman"][3:] == [
        "3",
        "4",
    ]
    assert values["analogies", str(tasks["analogies"]), "src", "second", "3CosAdd", "all", "accuracy"][0] == "0.000000"
    assert {line[0] for line in lines} == {"lexicon", "similarity", "analogies", "sentences"}
    assert "WordSimilarity(cross" in tsv.err
    assert "1 lines skipped, the first: line 4" in tsv.err

    table = qwp(*asked, "--format", "table").out
    for expected in (
        "Dictionaries",
        "Word similarity",
        "Analogies",
        "Sentences",
        "Summary",
        "3 of 4 (75 %)",
        "3CosMul",
    ):
        assert expected in table


def test_one_task_without_a_dictionary(tasks: dict[str, Path]) -> None:
    asked = ["evaluate", "--src", tasks["src"], "--tgt", tasks["tgt"]]
    ran = qwp(*asked, "--similarity", tasks["words"], "--format", "table")
    assert ran.code == 0
    assert "Summary" not in ran.out
    text = qwp(*asked, "--sentences", tasks["english"], tasks["spanish"], "--queries", 2, "--json").json
    assert text["sentences"][0]["coverage"]["queries"] == 2
    assert text["lexicons"] == []


def test_bad_input_of_other_tasks_is_explained(tasks: dict[str, Path]) -> None:
    cases: list[tuple[list[str], str]] = [
        ([], "expected --lexicon FILE, --similarity FILE, --analogies FILE, --sentences SRC TGT or --held-out"),
        (["--idf", "{english}", "{spanish}", "--lexicon", "{gold}"], "is for --sentences, which was not given"),
        (["--similarity", "tgt:{words}"], "is covered as tgt, expected at least 1"),
        (["--similarity", "tgt:{words}"], "Other sides would cover 3 as src: name the side"),
        (["--similarity", "none.tsv"], "none.tsv does not exist"),
        (["--similarity", "{gold}"], "holds no pair of words with a score"),
        (["--analogies", "{gold}"], "holds no analogy"),
        (
            ["--sentences", "{spanish}", "{english}", "--max-sentences", "2"],
            "0 of the 2 different pairs of sentences have known words on both sides",
        ),
        (["--sentences", "{english}", "{analogies}"], "has 3 lines and"),
        (["--sentences", "{english}", "{spanish}", "--queries", "0"], "queries=0"),
    ]
    for args, message in cases:
        given = [arg.format(**tasks) for arg in args]
        ran = qwp("evaluate", "--src", tasks["src"], "--tgt", tasks["tgt"], *given)
        assert ran.code == 2
        assert message in ran.err


def test_held_out_items_retrieve_their_counterparts(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    alignment = Alignment.load(aligned)
    files = [tmp_path / f"{side}.npy" for side in ("old", "new")]
    gold = [(a, b) for a, b in Lexicon.load(problem.lexicon) if a in alignment.src and b in alignment.tgt][:40]
    for file, space, words in zip(files, (alignment.src, alignment.tgt), zip(*gold, strict=True), strict=True):
        np.save(file, space.vectors[[space.index[word] for word in words]])
    found = evaluate_counterparts(alignment, *files, bootstrap=0)
    ran = qwp("evaluate", aligned, "--held-out", *files, "--bootstrap", "0", "--json")
    assert ran.code == 0
    assert ran.json["counterparts"] == [found.to_dict()]
    back = qwp("evaluate", aligned, "--held-out", *files, "--reverse", "--bootstrap", "0", "--json")
    assert back.json["counterparts"] == [evaluate_counterparts(alignment, *files, reverse=True, bootstrap=0).to_dict()]
    shown = qwp("evaluate", aligned, "--held-out", *files)
    assert "recall@10" in shown.out + shown.err
    alone = qwp("evaluate", "--src", problem.src, "--tgt", problem.tgt, "--held-out", *files)
    assert alone.code == 2
    assert "expected the folder of one" in alone.err
