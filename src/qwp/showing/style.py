"""Colours and style rules that all pages share, light and dark."""

from __future__ import annotations

SERIES = 7
"""Colours of data series, `c0` to `c6`. All have a contrast of at least 3 with a card, and with `on` of at least 4."""

_COLOURS = {
    "bg": ("#f6f7f9", "#12161c"),
    "card": ("#fff", "#1a2029"),
    "ink": ("#1c2430", "#e6eaf0"),
    "soft": ("#5a6675", "#9ba7b6"),
    "rule": ("#e1e5ea", "#2d3642"),
    "grid": ("#eceff3", "#262e39"),
    "accent": ("#0b61a4", "#7ab8f0"),
    "src": ("#1d5fd0", "#7fb2ff"),
    "tgt": ("#b8480b", "#ffab70"),
    "ok": ("#146c3c", "#7ddba3"),
    "okbg": ("#e4f5ea", "#15301f"),
    "bad": ("#a51d1d", "#ff9d9d"),
    "badbg": ("#fdeaea", "#3a1a1c"),
    "unsure": ("#8a5300", "#f0c070"),
    "unsurebg": ("#fdf3e0", "#33270f"),
    "chip": ("#f0f2f5", "#252d38"),
    "heat": ("#0b61a4", "#4da3e8"),
    "cap": ("58%", "44%"),  # share of `heat` in the hottest cell of a table
    "on": ("#fff", "#0d1117"),
    "c0": ("#0072b2", "#56b4e9"),
    "c1": ("#c2410c", "#f5914e"),
    "c2": ("#00805c", "#3fc79a"),
    "c3": ("#a8437f", "#e48cc0"),
    "c4": ("#8a6100", "#e6b64d"),
    "c5": ("#4c6fd0", "#98b0ff"),
    "c6": ("#5a6570", "#aab4bf"),
}
"""Colours of the light and the dark scheme."""
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}

CHARTS = """
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.tick,.label,.key{fill:var(--soft);font-size:12px}.label,.key{font-size:12.5px}
.line{fill:none;stroke:var(--src);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.ideal{stroke:var(--soft);stroke-dasharray:5 4}
.dot{fill:var(--src);stroke:var(--card)}
.dot:hover{stroke:var(--ink);stroke-width:2}
.hover{fill:transparent}.hover:hover{fill:var(--src);fill-opacity:.5}
circle.src,rect.src{fill:var(--src)}circle.tgt,rect.tgt{fill:var(--tgt)}
.whisker{stroke-width:2;stroke-opacity:.65}.whisker.src{stroke:var(--src)}.whisker.tgt{stroke:var(--tgt)}
.pair{stroke:var(--soft);stroke-opacity:.55}
.leader{stroke:var(--soft);stroke-opacity:.45;stroke-width:.7;stroke-dasharray:2 2}
.word{font-size:12.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.word.src{fill:var(--src)}.word.tgt{fill:var(--tgt)}
"""
"""Rules for the parts of a chart, in pages and in files."""


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


BASE = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
@media print{{:root{{{_variables(LIGHT)}}}body{{background:#fff}}section{{break-inside:avoid}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--bg);color:var(--ink);line-height:1.5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-size:16px}}
h1{{font-size:1.65rem;line-height:1.25;margin:0 0 16px;overflow-wrap:anywhere}}
a{{color:var(--accent)}}
section{{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:18px 20px;margin:18px 0 0}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
thead th{{color:var(--soft);font-weight:600;font-size:.85rem}}
tbody th{{font-weight:500}}
figure{{margin:0;min-width:0;max-width:620px}}
figcaption{{margin-bottom:6px}}
svg{{display:block;width:100%;height:auto;font-family:inherit}}
{CHARTS}"""
"""Rules of every page."""
