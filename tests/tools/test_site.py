"""The site of the documents: complete navigation, no warnings, nothing loaded from the network."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import qwp
from tools import project, site

yaml: Any = pytest.importorskip("yaml")

NEEDED = ("mkdocs", "material", "mkdocstrings", "latex2mathml")
LOCAL = ("file:", "data:", "blob:")


def settings() -> dict[str, Any]:
    found = yaml.safe_load((project.ROOT / "mkdocs.yml").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def pages(nav: Any) -> Iterator[str]:
    """Return the files of a part of the navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from pages(each)


def test_every_document_is_in_the_navigation_once_and_nothing_else_is() -> None:
    named = list(pages(settings()["nav"]))
    documents = {path.relative_to(project.ROOT / "docs").as_posix() for path in (project.ROOT / "docs").rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == documents | set(site.PAGES)


def test_warnings_of_every_kind_are_on() -> None:
    kinds = settings()["validation"]
    assert {value for each in kinds.values() for value in each.values()} == {"warn"}
    assert {"omitted_files", "not_found"} <= set(kinds["nav"])
    assert {"not_found", "anchors"} <= set(kinds["links"])


def test_nothing_is_fetched_by_the_settings() -> None:
    theme = settings()["theme"]
    assert theme["font"] is False
    # With the address of the repository the theme would load the number of stars.
    assert "repo_url" not in settings()


def test_the_python_page_has_all_public_names() -> None:
    assert set(qwp.__all__) - {"__version__"} <= site.homes()
    for home in re.findall(r"^::: (\S+)$", site.api(), re.MULTILINE):
        module, _, name = home.rpartition(".")
        assert hasattr(importlib.import_module(module), name), home


def test_links_lead_to_the_site_or_to_the_repository() -> None:
    for before, after in (
        ("[a](../CONTRIBUTING.md#style)", "[a](contributing.md#style)"),
        ("[a](../README.md#results)", "[a](index.md#results)"),
        ("[a](../benchmarks/run.py)", f"[a]({site.repository()}benchmarks/run.py)"),
        (f"[a]({site.repository()}docs/faq.md#gpu)", "[a](faq.md#gpu)"),
        ("[a](faq.md#gpu)", "[a](faq.md#gpu)"),
        ("[a](https://example.org/docs/x.md)", "[a](https://example.org/docs/x.md)"),
    ):
        assert site.with_site_links(before) == after
    for before, after in (
        ("[a](../faq.md#gpu)", "[a](../faq.md#gpu)"),
        ("[a](../../benchmarks/run.py)", f"[a]({site.repository()}benchmarks/run.py)"),
        ("[a](../../CONTRIBUTING.md)", "[a](../contributing.md)"),
    ):
        assert site.with_site_links(before, "research/systems.md") == after
    found = site.with_links_from_root("[a](docs/faq.md) [b](src/qwp/api.py) [c](#here) [d](SECURITY.md)")
    assert found == f"[a](faq.md) [b]({site.repository()}src/qwp/api.py) [c](#here) [d](security.md)"


def test_headings_are_named_as_on_a_code_host() -> None:
    titles = ("qwp experiment run NAME, report NAME, list", 'Is "succeeded" a guarantee?')
    assert [*map(site.slug, titles)] == ["qwp-experiment-run-name-report-name-list", "is-succeeded-a-guarantee"]


def test_formulas_become_mathml() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    inline = site.with_formulas(r'<p><span class="arithmatex">\(a &lt; \varepsilon\)</span></p>')
    assert re.fullmatch(r'<p><math [^>]*display="inline">.*&#x0003C;.*</math></p>', inline), inline
    block = site.with_formulas('<div class="arithmatex">\\[x^2\\]</div>')
    assert 'display="block"' in block
    assert "msup" in block
    norm = site.with_formulas(r'<span class="arithmatex">\(\lVert x_i W - y_j \rVert^2\)</span>')
    assert norm.count('<mo stretchy="false" lspace="0" rspace="0">&#x02016;</mo>') == 2
    over = site.with_formulas(r'<span class="arithmatex">\(\overline{A B}\)</span>')
    assert '<mrow class="overline"><mi>A</mi><mi>B</mi></mrow>' in over


# --------------------------------------------------------------------------- building it


class Addresses(HTMLParser):
    """Collects the addresses that a browser would load with a page, and the links in it."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.formulas = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.formulas += tag == "math"
        if tag in ("script", "img", "link", "iframe") and (address := named.get("src") or named.get("href")):
            self.loaded.append(address)
        if tag == "a" and (address := named.get("href")):
            self.links.append(address)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site with warnings as errors."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed (extra docs)")
    out = tmp_path_factory.mktemp("site")
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    ran = subprocess.run(command, cwd=project.ROOT, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "WARNING" not in ran.stderr, ran.stderr
    return out


@pytest.mark.slow
def test_the_site_is_whole_and_loads_nothing_from_elsewhere(built: Path) -> None:
    found = {path.relative_to(built).as_posix(): Addresses() for path in built.rglob("*.html")}
    for name, page in found.items():
        page.feed((built / name).read_text("utf-8"))
        for address in page.loaded:
            assert not address.startswith(("http", "//")), f"{name} loads {address}"
            file = (built / name).parent / address.partition("?")[0].lstrip("/")
            assert file.exists() or name == "404.html", f"{name}: {address}"
    assert {Path(name).with_suffix(".html").as_posix() for name in pages(settings()["nav"])} <= set(found)
    assert found["method.html"].formulas > 50
    reached = {link.partition("#")[0] for link in found["index.html"].links}
    assert {"tutorial.html", "tasks.html", "method.html", "cli.html"} <= reached
    assert "arithmatex" not in (built / "method.html").read_text("utf-8")
    assert (built / "vendor" / "iframe-worker" / "LICENSE.txt").is_file()
    assert 'id="qwp.api.align"' in (built / "api.html").read_text("utf-8")
