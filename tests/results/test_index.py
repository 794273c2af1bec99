"""alignment.json: what it has to say, even where its hash is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qwp import Alignment, InputError
from qwp.results import schema
from qwp.results.index import CONTENT, read_index
from qwp.results.saved import ALIGNMENT, PART_FILES
from tests.cli.conftest import qwp as run_qwp
from tests.results.test_saved import index


def test_what_is_saved_is_what_the_schema_says(aligned: Alignment, tmp_path: Path) -> None:
    assert CONTENT.problem(aligned.checked_content(), "") is None
    aligned.save(tmp_path)
    stored = read_index(tmp_path)
    assert (stored.path, stored.schema) == (tmp_path / ALIGNMENT, 2)
    assert stored.content == aligned.checked_content()
    assert stored.sha256 == index(tmp_path)["sha256"]
    assert set(stored.parts) == set(PART_FILES)


@pytest.mark.parametrize("name", ["provenance", "normalization", "quality", "history"])
def test_nothing_may_be_missing(aligned: Alignment, name: str) -> None:
    content = aligned.checked_content()
    del content[name]
    assert CONTENT.problem(content, "") == f"{name} is missing"


def change(*keys: str, to: object) -> Callable[[dict[str, Any]], None]:
    def edit(about: dict[str, Any]) -> None:
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = to

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            change("provenance", "src", "n_words", to=399),
            "holds 400 x 12 vectors, the alignment was made with 399 x 12",
        ),
        (
            change("provenance", "src", "dim", to=13),
            r"src_map is float32 of shape \(12, 12\), expected float32 or float64 of shape \(13, 12\)",
        ),
        (change("provenance", "seed", to="0"), "provenance.seed is '0'; expected a whole number"),
        (change("provenance", "config", to=[]), r"provenance.config is \[\]; expected an object"),
        (change("provenance", "config", "start", to={}), "provenance.config.start is"),
        (change("provenance", "src", "path", to=3), "provenance.src.path is 3"),
        (change("provenance", "more", to=3), "provenance.'more' is not known"),
        (
            change("normalization", "src", to=["whiten"]),
            r"normalization.src\[0\] is 'whiten'; expected one of unit, cent",
        ),
        (change("normalization", "src", to=["unit"]), "src_mean_0 is not known"),
        (change("normalization", "src", to=["center"] * 2), "src_mean_1 is missing"),
        (change("quality", "verdict", to="real"), "quality.verdict is 'real'"),
        (change("quality", "ratio", to=None), "quality.ratio is None; expected a finite number"),
        (change("quality", "fitted", to=None), "quality.fitted is None; expected an object"),
        (change("history", to={}), "history is {}; expected a list"),
        (change("history", to=[None]), r"history\[0\] is None"),
        (change("parts", to=None), "parts is None"),
        (change("parts", "folder", to="../elsewhere"), "parts.folder is '../elsewhere'"),
        (change("parts", "folder", to="/etc"), "parts.folder is '/etc'"),
        (
            change("parts", "files", "../../x", to={"sha256": "0" * 64, "bytes": 1}),
            "a name in parts.files is '../../x'",
        ),
        (change("parts", "files", to={}), "parts.files.maps.safetensors is missing"),
        (change("schema", to=3), "has schema 3"),
    ],
)
def test_nonsense_with_the_right_hash_is_refused(
    aligned: Alignment, tmp_path: Path, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    aligned.save(tmp_path)
    about = index(tmp_path)
    edit(about)
    del about["sha256"]
    (tmp_path / ALIGNMENT).write_text(json.dumps({**about, "sha256": schema.digest(about)}))
    with pytest.raises(InputError, match=message):
        Alignment.load(tmp_path)
    ran = run_qwp("info", tmp_path)
    assert ran.code in (0, 2)
    assert "internal" not in ran.err
