"""`qwp data`. tests/downloads has the tests of faulty servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qwp.cli.data import _DownloadProgress
from qwp.downloads.catalogue import item
from tests.cli.conftest import Problem, leftovers, qwp
from tests.downloads.conftest import FILES, WORDS, expected
from tests.downloads.conftest import server as server
from tests.downloads.server import Plan, Served
from tests.test_documents import documented, fields_of


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QWP_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_download_list_and_path(server: Served, folder: Path) -> None:
    ran = qwp("data", "download", "en", "crawl:en", "en-es", "--base-url", server.url, "--max-vocab", 100)
    assert ran.code == 0, ran.err
    before, _, _ = ran.err.partition("MUSE")
    assert "licence CC BY-SA 3.0; about 0.5 GB" in before
    assert "licence CC BY-NC 4.0" in ran.err
    assert f"en: 100 words, {folder / 'wiki' / 'en.vec'}\n" in ran.out
    assert f"en-es.test: {len(FILES[item('en-es.test')].splitlines())} pairs, " in ran.out
    for name in ("en", "crawl:en", "en-es", "en-es.train", "en-es.test"):
        shown = qwp("data", "path", name)
        assert Path(shown.out.rstrip("\n")).read_bytes() == expected(item(name), 100)
    listed = qwp("data", "list")
    assert "https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.LANG.vec" in listed.out
    assert "crawl:en" in listed.out
    names = [file["name"] for file in qwp("data", "list", "--json").json["files"]]
    assert names == ["en", "crawl:en", "en-es.train", "en-es.test", "en-es"]
    again = qwp("data", "download", "en", "en-es.test", "--base-url", server.url, "--max-vocab", 50, "--json")
    assert [file["already_there"] for file in again.json["files"]] == [True, True]
    assert len(server.asked) == 5
    forced = qwp("data", "download", "en", "--base-url", server.url, "--force", "--json")
    assert forced.json["files"][0]["entries"] == WORDS
    assert len(server.asked) == 6


def test_json_is_documented(server: Served, folder: Path) -> None:
    text = documented("data")
    for args in (["download", "en", "--base-url", server.url], ["list"], ["path", "en"]):
        about = qwp("data", *args, "--json").json
        assert (about["command"], about["action"], about["folder"]) == ("data", args[0], str(folder))
        missing = [name for name in fields_of(about) - {"en"} if f"`{name}`" not in text]
        assert not missing
    assert qwp("data", "path", "en", "--json").json["paths"] == {"en": str(folder / "wiki" / "en.vec")}


def test_an_empty_folder(folder: Path) -> None:
    assert f"{folder} is empty: `qwp data download en es en-es`" in qwp("data", "list").out
    assert qwp("data", "path").out == f"{folder}\n"
    assert qwp("data", "path", "--data", folder / "x").out == f"{folder / 'x'}\n"
    assert not folder.exists()


def test_a_file_added_by_hand_is_listed(folder: Path) -> None:
    (folder / "wiki").mkdir(parents=True)
    (folder / "wiki" / "fr.vec").write_text("1 1\na 1\n")
    (folder / "wiki" / "notes.txt").write_text("")
    assert "added by hand" in qwp("data", "list").out
    assert [file["entries"] for file in qwp("data", "list", "--json").json["files"]] == [None]
    assert "downloaded before" in qwp("data", "download", "fr").out


def test_local_files_need_no_network(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cc.en.300.vec.gz").write_bytes(FILES[item("crawl:en")])
    ran = qwp("data", "download", "crawl:en", "--from", tmp_path, "--max-vocab", 20)
    assert ran.code == 0, ran.err
    assert (folder / "crawl" / "en.vec").read_bytes() == expected(item("crawl:en"), 20)


def test_bad_input_is_explained(folder: Path, server: Served) -> None:
    cases: list[tuple[list[str], str]] = [
        (["fetch"], "action fetch is not known; expected one of list, download, path"),
        (["download"], "was given no names"),
        (["list", "en"], "takes no names; received en"),
        (["path", "en"], "en.vec does not exist: run `qwp data download en` first"),
        (["path", "EN"], "received 'EN', expected a language"),
        (["path", "en", "--force"], "--force is for `qwp data download`"),
        (["download", "en", "--max-vocab", "0"], "max_vocab=0"),
        (["download", "en", "--base-url", "ftp://x"], "expected an address"),
        (["download", "en", "--from", "none"], "--from none is not a folder"),
        (["download", "en", "--from", ".", "--base-url", "http://x"], "leave one of them out"),
    ]
    for args, message in cases:
        ran = qwp("data", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert not [path for path in folder.rglob("*") if path.is_file()]


def test_files_before_a_failure_are_kept(server: Served, folder: Path) -> None:
    server.plans, server.usual = [Plan()], Plan(status=403)
    ran = qwp("data", "download", "en", "es", "--base-url", server.url, "--json")
    assert ran.code == 2
    assert "was refused: the server answered 403" in ran.json["error"]["message"]
    assert [path.name for path in sorted(folder.rglob("*")) if path.is_file()] == ["en.vec", "en.vec.json"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupted_download_continues(server: Served, folder: Path, number: signal.Signals, code: int) -> None:
    """Stop a process that waits for the server, and repeat the command."""
    command = [sys.executable, "-m", "qwp", "data", "download", "en", "--base-url", server.url, "--json"]
    server.plans = [Plan(stop=20_000), Plan(delay=60.0)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while len(server.asked) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    left = sorted(name for name in os.listdir(folder / "wiki") if not name.endswith(".tmp"))
    assert left == ["en.vec.part", "en.vec.part.json"]
    if number != signal.SIGKILL:
        assert "interrupted at en: the downloaded part is kept, and the same command continues" in err
        assert '"kind": "interrupted"' in out
        assert leftovers(folder) == []
    assert qwp("data", "path", "en").code == 2
    assert qwp("data", "download", "en", "--base-url", server.url).code == 0
    assert server.asked[-1][1] == "bytes=20000-"
    assert (folder / "wiki" / "en.vec").read_bytes() == expected(item("en"), WORDS)
    assert leftovers(folder) == []


def test_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 20.0, 21.0])
    with _DownloadProgress(item("en"), clock=lambda: next(times)) as shown:
        for entries in (1000, 2000, 5000, 6000):
            shown.listener.progress(entries, 9000, entries * 100)
    assert capsys.readouterr().err == "en: 5,000 of 9,000 words, 0.5 MB (200 words/s, 20.0 s left)\n"


def test_align_accepts_names_of_downloaded_vectors(
    problem: Problem, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = qwp("align", "en", "es", "--out", "x")
    assert refused.code == 2
    assert "en does not exist, and vectors of that name are not in" in refused.err
    assert "`qwp data download en`" in refused.err
    (folder / "wiki").mkdir(parents=True)
    (folder / "wiki" / "en.vec").write_bytes(problem.src.read_bytes())
    (folder / "wiki" / "es.vec").write_bytes(problem.tgt.read_bytes())
    ran = qwp("align", "en", "es", "--out", "x", "--method", "procrustes", "--lexicon", problem.lexicon, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["provenance"]["src"]["name"] == "en"
    assert ran.json["provenance"]["src"]["path"] == str(folder / "wiki" / "en.vec")
