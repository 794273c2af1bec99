"""How the page of a report looks, light, dark, narrow and in print, and its script."""

from __future__ import annotations

_LIGHT = (
    "--cap:58%;--bg:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5b6776;--line:#d9dee5;--accent:#0b61a4;--heat:#0b61a4;--on:#fff;"
    "--good:#12703c;--bad:#a8321f;--c0:#0072b2;--c1:#c2410c;--c2:#00805c;--c3:#a8437f;--c4:#8a6100;"
    "--c5:#4c6fd0;--c6:#5a6570"
)
_DARK = (
    "--cap:44%;--bg:#12161c;--card:#1a2029;--ink:#e6eaf0;--soft:#9ba7b6;--line:#2e3742;--accent:#7ab8f0;--heat:#4da3e8;--on:#0d1117;"
    "--good:#5fce8f;--bad:#f28b7a;--c0:#56b4e9;--c1:#f5914e;--c2:#3fc79a;--c3:#e48cc0;--c4:#e6b64d;"
    "--c5:#98b0ff;--c6:#aab4bf"
)
_COLOURS = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(7))
STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
{_COLOURS}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--bg);color:var(--ink);
 font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}}
header,nav,main{{max-width:1180px;margin:0 auto;padding:0 16px}}
header{{padding-top:28px}}
h1{{margin:0;font-size:1.7rem;line-height:1.2}}
h2{{margin:0 0 4px;font-size:1.2rem}}
h3{{margin:18px 0 4px;font-size:1rem}}
p{{margin:4px 0 12px;color:var(--soft);max-width:80ch}}
nav{{display:flex;flex-wrap:wrap;gap:6px 14px;margin-bottom:14px}}
a{{color:var(--accent)}}
section{{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px;margin:0 0 18px}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}}
th,td{{padding:5px 10px;text-align:left;white-space:nowrap;vertical-align:top}}
th{{font-weight:600}}
thead th{{border-bottom:1px solid var(--line);color:var(--soft)}}
tr.first>*{{border-top:1px solid var(--line)}}
tbody th{{font-weight:500}}
td.best .value{{font-weight:700}}
td.level .value{{font-style:italic}}
thead th:first-child,tbody th:first-child{{position:sticky;left:0;background:var(--card)}}
.sign{{color:var(--accent)}}
.soft{{color:var(--soft);font-size:.88em}}
.up{{color:var(--good)}}.down{{color:var(--bad)}}
figure{{margin:0}}
figcaption{{font-weight:600;font-size:.9rem}}
.charts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(270px,1fr));gap:12px;margin:8px 0 16px}}
.charts figure{{max-width:460px}}
svg{{display:block;width:100%;height:auto;font-family:inherit}}
.grid{{stroke:var(--line)}}
.axis{{stroke:var(--soft)}}
.tick,.label{{fill:var(--soft);font-size:11px}}
.label{{font-size:11.5px}}
.line{{stroke:var(--c);fill:none;stroke-width:2}}
.dashed{{stroke-dasharray:4 4;stroke-width:1.3}}
.band{{fill:var(--c);opacity:.16}}
.dot{{fill:var(--c);stroke:var(--card);stroke-width:1}}
.hollow{{fill:var(--card);stroke:var(--c);stroke-width:1.3}}
.leader{{stroke:var(--soft);stroke-width:.8}}
.number{{fill:var(--on);font-size:9.5px;font-weight:700}}
.legend,.claims,.names{{list-style:none;padding:0;margin:6px 0}}
.legend{{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:.9rem}}
.legend li{{display:flex;align-items:center;gap:6px}}
.swatch{{width:26px;flex:none}}
.claims li{{display:grid;grid-template-columns:11.5em 1fr;gap:4px 14px;padding:10px 0;
 border-top:1px solid var(--line)}}
.verdict{{font-weight:600;font-size:.9rem}}
.verdict.yes{{color:var(--good)}}.verdict.no{{color:var(--bad)}}.verdict.open{{color:var(--soft)}}
.beside{{display:grid;grid-template-columns:minmax(0,560px) minmax(0,1fr);gap:16px;align-items:center;
 margin-bottom:12px}}
.names{{font-size:.88rem;columns:2 210px}}
.names li{{break-inside:avoid;padding:1px 0 1px 2em;text-indent:-2em}}
.names .badge{{text-indent:0}}
.badge{{display:inline-block;min-width:1.7em;text-align:center;border-radius:1em;background:var(--c);
 color:var(--on);font-size:.8em;font-weight:700}}
select{{font:inherit;max-width:100%;color:inherit;background:var(--bg);border:1px solid var(--line);
 border-radius:6px;padding:3px 6px}}
.heats{{display:flex;align-items:flex-start;flex-wrap:wrap;gap:20px;margin:10px 0}}
.heat td,.heat th{{text-align:center;padding:9px 14px}}
.heat caption{{text-align:left;color:var(--soft)}}
.heat td[style]{{background:color-mix(in srgb,var(--heat) calc(6% + var(--cap)*var(--v)),var(--card));
 border:2px solid var(--card);print-color-adjust:exact;-webkit-print-color-adjust:exact}}
svg.plan{{max-width:640px;min-width:520px}}
.empty{{fill:none;stroke:var(--line)}}
.mass{{fill:var(--heat)}}
.word{{fill:var(--ink);font-size:9.5px}}
#tip{{position:fixed;z-index:9;max-width:min(320px,90vw);padding:6px 9px;border-radius:6px;background:var(--ink);
 color:var(--bg);font-size:.82rem;pointer-events:none}}
[hidden]{{display:none!important}}
@media (max-width:760px){{section{{padding:14px 12px}}.beside,.claims li{{grid-template-columns:1fr}}
 h1{{font-size:1.4rem}}
 tbody th:first-child{{white-space:normal;min-width:5.5em}}.heat td,.heat th{{padding:7px 8px}}}}
@media print{{:root{{{_LIGHT}}}body{{background:#fff;font-size:11px}}nav,label{{display:none}}section{{border:0;
 padding:0}}
 figure,.claims li,tr{{break-inside:avoid}}.scroll{{overflow:visible}}}}
"""
# Without the two signs that XML reads as markup.
SCRIPT = """
const tip = document.getElementById('tip');
document.querySelectorAll('svg title').forEach(t => {
  const mark = t.parentNode; mark.dataset.tip = t.textContent; t.remove();
});
document.querySelectorAll('td[title]').forEach(t => { t.dataset.tip = t.title; t.removeAttribute('title'); });
function show(event) {
  const mark = event.target.closest ? event.target.closest('[data-tip]') : null;
  if (!mark) { tip.hidden = true; return; }
  tip.textContent = mark.dataset.tip; tip.hidden = false;
  const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 6);
  const below = event.clientY + 18, above = event.clientY - tip.offsetHeight - 12;
  const y = below + tip.offsetHeight > window.innerHeight ? above : below;
  tip.style.left = Math.max(4, x) + 'px'; tip.style.top = y + 'px';
}
document.addEventListener('pointermove', show);
document.addEventListener('pointerdown', show);
document.addEventListener('scroll', () => { tip.hidden = true; }, {passive: true});
document.querySelectorAll('.chooser').forEach(box => {
  const select = box.querySelector('select'), all = box.querySelectorAll('.choice');
  select.addEventListener('change', () => all.forEach((one, i) => { one.hidden = String(i) !== select.value; }));
});
"""
