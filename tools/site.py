"""MkDocs hooks: generated pages, links, and formulas as MathML.

The documents in docs/ serve both a code host and the site. Some pages exist on the site only:
CONTRIBUTING.md and similar files, the public names of the package, and the notebook.
Formulas become MathML, which browsers draw without a script.
"""

from __future__ import annotations

import html as entities
import json
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools import project

NOTEBOOK = project.ROOT / "docs" / "notebooks" / "first_alignment.ipynb"
_SPAN = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.+?)\\[)\]]</(?P=tag)>', re.DOTALL)
# A line over several characters, which only some fonts can stretch; site.css draws it.
_OVERLINE = re.compile(r'<mover><mrow>(?P<what>(?:(?!<mover>).)*?)</mrow><mo accent="true">&#x02015;</mo></mover>')
# Browsers stretch the bars of a norm to the height of the whole line, unless they are told not to.
_BARS = re.compile(r"<mo>(?P<bar>&#x02016;|&#x0007C;|&#x02225;)</mo>")
_RELATIVE = re.compile(r"\]\((?P<path>\.\./[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_ABSOLUTE_DOCS = r"\]\({}docs/(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)"
_SHIM_ADDRESS, _SHIM = "https://unpkg.com/iframe-worker/shim", "vendor/iframe-worker/shim.js"
# Files of the checkout that are pages of the site.
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
_LINKED = {**ROOT_PAGES, "README.md": "index.md"}


def slug(title: str) -> str:
    """Return the anchor of a heading, the same as on a code host."""
    kept = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower())
    return kept.replace(" ", "-")


def repository() -> str:
    """Return the address below which the code host shows files."""
    source: str = project.pyproject()["project"]["urls"]["Source"]
    return f"{source}/blob/main/"


def pictures() -> str:
    """Return the address below which the code host has the content of files, such as pictures."""
    return repository().replace("//github.com/", "//raw.githubusercontent.com/").replace("/blob/", "/")


# --------------------------------------------------------------------------- generated pages


def api() -> str:
    """Return the public names; mkdocstrings inserts their docstrings."""
    parts = [
        "# Python",
        "What `import qwp` gives. `qwp.methods` has the other methods, each an estimator like `QWP`; their parameters "
        "are in [parameters.md](parameters.md).",
    ]
    for heading, names in _GROUPS.items():
        parts += [f"## {heading}", *(f"::: {home}{_OPTIONS.get(home, '')}" for home in names)]
    return "\n\n".join(parts) + "\n"


# The public names by purpose, each with the module that defines it.
_GROUPS = {
    "Aligning": (
        "qwp.api.align",
        "qwp.api.align_many",
        "qwp.api.align_all",
        "qwp.api.demo",
        "qwp.methods.compositions.QWP",
    ),
    "Vectors and dictionaries": (
        *("qwp.spaces.io.load", "qwp.spaces.embeddings.Embeddings", "qwp.spaces.lexicon.Lexicon"),
        "qwp.downloads.folders.data_path",
    ),
    "Results": (
        *("qwp.results.alignment.Alignment", "qwp.results.lexicon.InducedPair"),
        *("qwp.results.translator.Translation", "qwp.results.translator.Translations"),
        "qwp.results.all_pairs.AllPairs",
        "qwp.results.several.MultiAlignment",
    ),
    "Judging": (
        *(
            "qwp.judging.evaluation.evaluate",
            "qwp.judging.evaluation.Evaluation",
            "qwp.judging.ranks.AlignedFiles",
            "qwp.judging.counterparts.evaluate_counterparts",
            "qwp.judging.similarity.evaluate_similarity",
            "qwp.judging.analogies.evaluate_analogies",
            "qwp.judging.sentences.evaluate_sentences",
        ),
        *("qwp.judging.verdict.Quality", "qwp.judging.estimate.Estimate", "qwp.report.writing.write_report"),
    ),
    "Migration": (
        *("qwp.migration.run.migrate", "qwp.migration.run.Migration", "qwp.migration.run.Report"),
        *("qwp.migration.adapter.Adapter", "qwp.migration.measure.Recall"),
        *("qwp.migration.comparison.compare", "qwp.migration.comparison.Comparison"),
    ),
    "One language at two times": ("qwp.shifts.compare.shift", "qwp.shifts.compare.Shift"),
    "Errors": ("qwp.errors.InputError", "qwp.errors.QwpError"),
}


# The methods of an estimator that users call, inherited ones included.
_ESTIMATOR = "options: {inherited_members: true, members: [fit, fit_many, transform, validate]}"
_OPTIONS = {"qwp.methods.compositions.QWP": f"\n    {_ESTIMATOR}"}


def homes() -> set[str]:
    """Return the names on the Python page without their modules."""
    return {home.rpartition(".")[2] for names in _GROUPS.values() for home in names}


def notebook(path: Path = NOTEBOOK) -> str:
    """Return the cells of a notebook with their output."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [f"```text\n{shown}\n```" for shown in _outputs(cell.get("outputs", []))]
    address = f"{repository()}{path.relative_to(project.ROOT).as_posix()}"
    return "\n\n".join([*parts, f"The notebook itself is [in the repository]({address})."]) + "\n"


def _outputs(outputs: list[dict[str, Any]]) -> Iterator[str]:
    for output in outputs:
        text = output.get("text") or output.get("data", {}).get("text/plain") or ""
        if shown := "".join(text).rstrip():
            yield shown


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api,
    "notebook.md": notebook,
    **{
        page: (lambda name=name: (project.ROOT / name).read_text("utf-8"))  # type: ignore[misc]
        for name, page in ROOT_PAGES.items()
    },
}
"""Pages of the site that are no file in docs/, and the functions that return their Markdown."""


# --------------------------------------------------------------------------- links and formulas


def with_site_links(text: str, page: str = "index.md") -> str:
    """Point the links into the checkout to pages of the site, or to the repository if there is no page.

    page: the path of the page in docs/, from which relative links start.
    """

    def converted(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), found["path"]))
        anchor = found["anchor"] or ""
        if path in _LINKED:
            up = "../" * page.count("/")
            return f"]({up}{_LINKED[path]}{anchor})"
        return found[0] if path.startswith("docs/") else f"]({repository()}{path}{anchor})"

    for address in (repository(), pictures()):
        absolute = re.compile(_ABSOLUTE_DOCS.format(re.escape(address)))
        text = absolute.sub(lambda found: f"]({found['path']}{found['anchor'] or ''})", text)
    return _RELATIVE.sub(converted, text)


def with_links_from_root(text: str) -> str:
    """Convert the links of a file outside of docs/: docs/X becomes X, other paths start from the parent folder."""
    return with_site_links(
        re.sub(r"\]\((?!https?:|#|docs/)(?P<path>[\w.][^)\s]*)\)", r"](../\g<path>)", _in_docs(text))
    )


def _in_docs(text: str) -> str:
    return re.sub(r"\]\(docs/", f"]({repository()}docs/", text)


def with_formulas(html: str) -> str:
    """Convert the formulas of a page to MathML."""
    from latex2mathml.converter import convert

    def drawn(found: re.Match[str]) -> str:
        display = "block" if found["open"] == "[" else "inline"
        made = str(convert(entities.unescape(found["tex"]), display=display))
        made = _BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\g<bar></mo>', made)
        return _OVERLINE.sub(r'<mrow class="overline">\g<what></mrow>', made)

    return _SPAN.sub(drawn, html)


# --------------------------------------------------------------------------- hooks


def on_config(config: Any) -> Any:
    """Give headings the anchors of a code host."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = lambda title, _: slug(title)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for name, make in PAGES.items():
        text = make()
        from_root = name in ROOT_PAGES.values()
        files.append(File.generated(config, name, content=with_links_from_root(text) if from_root else text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Convert the links into the checkout."""
    return with_site_links(markdown, page.file.src_uri)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the script for searching from the disk from docs/vendor instead of the network."""
    return output.replace(_SHIM_ADDRESS, "../" * page.file.src_uri.count("/") + _SHIM)


def on_post_template(output_content: str, **_: Any) -> str:
    """Do the same for the page of the error 404."""
    return output_content.replace(_SHIM_ADDRESS, _SHIM)


def on_page_content(html: str, **_: Any) -> str:
    """Convert the formulas."""
    return with_formulas(html)
