"""`qwp explore`."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import qwp


@pytest.mark.slow
def test_the_page_is_served_until_ctrl_c(aligned: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(aligned, tmp_path / "copy")
    command = [sys.executable, "-m", "qwp", "explore", str(copy), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}api/overview", timeout=30) as answer:
            assert json.load(answer)["alignments"][0]["name"] == "copy"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "ended" in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "port=70000 is out of range; expected 0 to 65,535"),
        (["--max-words", "1"], "max_words=1 is out of range; expected 2 to 200,000"),
        (["--lexicon", "none.tsv"], "none.tsv"),
    ],
)
def test_mistakes_are_explained(aligned: Path, options: list[str], message: str) -> None:
    result = qwp("explore", aligned, *options)
    assert result.code == 2
    assert message in result.err


def test_a_folder_without_a_result_is_refused(tmp_path: Path) -> None:
    result = qwp("explore", tmp_path, "--no-browser")
    assert result.code == 2
    assert "alignment.json" in result.err


def test_a_port_in_use_is_reported(aligned: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = qwp("explore", aligned, "--no-browser", "--port", str(port))
    assert result.code == 2
    assert f"--port {port} cannot be used" in result.err
