// Line charts as SVG.

import { el, number, svg } from "./dom.js";

const W = 420, H = 200, LEFT = 56, RIGHT = 10, TOP = 10, BOTTOM = 34;

/** Makes a figure of a curve {title, x_label, y_label, x, y}. */
export function chart(curve) {
  const xs = curve.x, ys = curve.y;
  const [x0, x1] = padded(xs), [y0, y1] = padded(ys);
  const px = (x) => LEFT + (x - x0) / (x1 - x0) * (W - LEFT - RIGHT);
  const py = (y) => H - BOTTOM - (y - y0) / (y1 - y0) * (H - TOP - BOTTOM);
  const points = xs.map((x, place) => `${px(x).toFixed(1)},${py(ys[place]).toFixed(1)}`).join(" ");
  const ticks = (low, high, n) => Array.from({ length: n }, (_, place) => low + (high - low) * place / (n - 1));
  const label = (value) => (Number.isInteger(value) || Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3));
  return el("figure", { class: "chart" },
    el("figcaption", {}, el("strong", {}, curve.title), el("span", { class: "muted" }, ` last ${label(ys[ys.length - 1])}`)),
    svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${curve.title}: ${curve.y_label} by ${curve.x_label}, from ${number(ys[0])} to ${number(ys[ys.length - 1])}` },
      ticks(y0, y1, 4).map((y) => [svg("line", { x1: LEFT, x2: W - RIGHT, y1: py(y), y2: py(y), class: "grid" }),
        svg("text", { x: LEFT - 6, y: py(y) + 4, class: "tick", "text-anchor": "end" }, label(y))]).flat(),
      svg("text", { x: LEFT, y: H - 18, class: "tick" }, label(x0)), svg("text", { x: W - RIGHT, y: H - 18, class: "tick", "text-anchor": "end" }, label(x1)),
      svg("text", { x: (LEFT + W) / 2, y: H - 4, class: "tick", "text-anchor": "middle" }, `${curve.x_label} – ${curve.y_label}`),
      svg("polyline", { points, class: "curve" })));
}

function padded(values) {
  const low = Math.min(...values), high = Math.max(...values);
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}
