"""A self-contained HTML page about one alignment: no network, no JavaScript, charts as inline SVG made here.

The page is also well-formed XML, so each `<svg>` can be cut out, and the tests can read the whole page with a strict
parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qwp.judging.verdict import FAILED, SUCCEEDED
from qwp.report.sections import Section, provenance
from qwp.report.style import CSS
from qwp.showing.escapes import in_markup as escape

# The policy makes the browser itself refuse anything that is not in this file.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(
    *, title: str, verdict: str, explanation: str, sections: Sequence[Section], settings: Mapping[str, object]
) -> str:
    """The whole page as text. settings: the provenance; may be nested."""
    head = (
        '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
        f"<title>{escape(title)}</title><style>{CSS}</style>"
    )
    parts = [_banner(verdict, explanation), *(section.html() for section in sections), provenance(settings)]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main><h1>{escape(title)}</h1>\n{body}\n</main></body></html>\n"
    )


def _banner(verdict: str, explanation: str) -> str:
    css, sign = {SUCCEEDED: ("ok", "✓"), FAILED: ("bad", "✗")}.get(verdict, ("unsure", "!"))
    return (
        f'<div class="verdict {css}" role="status"><span class="sign" aria-hidden="true">{sign}</span>'
        f"<span>{escape(explanation)}</span></div>"
    )
