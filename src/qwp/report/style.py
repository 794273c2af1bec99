"""The colours of a page, light and dark, and its style sheet."""

from __future__ import annotations

LIGHT = {
    "bg": "#f6f7f9",
    "card": "#fff",
    "ink": "#1c2430",
    "soft": "#5a6675",
    "rule": "#e1e5ea",
    "grid": "#eceff3",
    "src": "#1d5fd0",
    "tgt": "#b8480b",
    "ok": "#146c3c",
    "okbg": "#e4f5ea",
    "bad": "#a51d1d",
    "badbg": "#fdeaea",
    "unsure": "#8a5300",
    "unsurebg": "#fdf3e0",
    "chip": "#f0f2f5",
}
_DARK = {
    "bg": "#12161c",
    "card": "#1a2029",
    "ink": "#e6eaf0",
    "soft": "#9ba7b6",
    "rule": "#2d3642",
    "grid": "#262e39",
    "src": "#7fb2ff",
    "tgt": "#ffab70",
    "ok": "#7ddba3",
    "okbg": "#15301f",
    "bad": "#ff9d9d",
    "badbg": "#3a1a1c",
    "unsure": "#f0c070",
    "unsurebg": "#33270f",
    "chip": "#252d38",
}

PICTURES = """
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
""".strip()
"""Of what is drawn, in a page and in files."""


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


CSS = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--bg);color:var(--ink);line-height:1.5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-size:16px}}
main{{max-width:1040px;margin:0 auto;padding:28px 16px 48px}}
h1{{font-size:1.65rem;line-height:1.25;margin:0 0 16px;overflow-wrap:anywhere}}
h2{{font-size:1.1rem;margin:0 0 12px}}
section{{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:18px 20px;
margin-top:18px}}
.verdict{{display:flex;gap:12px;align-items:flex-start;border-radius:12px;padding:14px 18px;font-weight:600;
overflow-wrap:anywhere;border:1px solid currentColor}}
.verdict.ok{{color:var(--ok);background:var(--okbg)}}
.verdict.bad{{color:var(--bad);background:var(--badbg)}}
.verdict.unsure{{color:var(--unsure);background:var(--unsurebg)}}
.verdict .sign{{font-size:1.2rem;line-height:1.25}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}}
th,td{{text-align:left;padding:7px 20px 7px 0;border-bottom:1px solid var(--rule);vertical-align:baseline}}
tr:last-child>td,tbody tr:last-child>th{{border-bottom:0}}
thead th{{color:var(--soft);font-weight:600;font-size:.85rem}}
tbody th{{font-weight:500}}
.facts th,.prov th{{color:var(--soft);width:1%;white-space:nowrap;padding-right:28px}}
.facts td{{font-weight:600}}
.num{{text-align:right}}
td.num,th.num{{padding-left:14px}}
.chip{{display:inline-block;background:var(--chip);border-radius:7px;padding:1px 9px;margin:2px 6px 2px 0}}
.chip.first{{font-weight:600}}
.chip small{{color:var(--soft);font-weight:400;margin-left:6px}}
.mark{{text-align:center;font-weight:700}}
.mark .yes{{color:var(--ok)}}.mark .no{{color:var(--bad)}}
p.lead{{margin:0 0 12px;max-width:75ch}}p.after{{margin:12px 0 0}}
code{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.9em;background:var(--chip);
border-radius:5px;padding:1px 5px;overflow-wrap:anywhere}}
.none,.note{{color:var(--soft)}}.note{{font-size:.85rem;font-weight:400}}
.none{{margin:0}}figcaption .note{{display:block;min-height:1.3em}}
.charts{{display:grid;gap:22px;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr))}}
.charts+.scroll,.scroll+.charts{{margin-top:16px}}.charts>.scroll{{align-self:center}}
figure{{margin:0;min-width:0;max-width:620px}}
figcaption{{margin-bottom:6px}}
svg{{display:block;width:100%;height:auto;font-family:inherit}}
svg.map{{min-width:640px}}
{PICTURES}
.legend{{margin:0 0 8px;display:flex;gap:8px 20px;flex-wrap:wrap;color:var(--soft);font-size:.9rem}}
.legend i{{display:inline-block;width:10px;height:10px;margin-right:7px}}
.legend .s{{background:var(--src);border-radius:50%}}.legend .t{{background:var(--tgt)}}
summary{{cursor:pointer;font-weight:600;font-size:1.1rem}}
details[open] summary{{margin-bottom:10px}}
.prov td{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
font-size:.85rem;overflow-wrap:anywhere}}
@media (max-width:600px){{.facts tr{{display:block;padding:6px 0;border-bottom:1px solid var(--rule)}}
.facts th,.facts td{{display:block;border:0;padding:0;width:auto}}.facts tr:last-child{{border:0}}
section{{padding:16px 14px}}}}
@media print{{body{{background:#fff}}section{{break-inside:avoid}}}}
""".strip()
