// Both vocabularies in one plane: pan, zoom, colours, lines between pairs, lasso, hubs and orphans.

import { get } from "./api.js";
import { app, current, link, note } from "./app.js";
import { choice, el, percent, show, texts, toast, whole, wordOf } from "./dom.js";
import { Points } from "./points.js";

const COLORINGS = [["language", "language"], ["confidence", "confidence"], ["right", "lexicon"]];
const SHOWN = [["all", "all"], ["hubs", "hubs"], ["orphans", "orphans"], ["mutual", "mutual pairs"], ["wrong", "not in the lexicon"]];
const MOST_LINES = 4000, MOST_LABELS = 140, MOST_LISTED = 200, CELLS = 64;
const SMALLEST = 0.8, LARGEST = 400;
// Share of the width and the height that is drawn beyond each edge; keep in step with style.css.
const BEYOND = 0.3;

export async function open(main, address) {
  const holder = el("div", { class: "map" });
  show(main, el("h1", { class: "hidden" }, "Map"), holder);
  holder.style.setProperty("--top", `${Math.round(main.getBoundingClientRect().top + scrollY)}px`);
  let alive = true;
  let closed = () => { alive = false; };
  load();
  return () => { alive = false; closed(); };

  async function load() {
    const veil = el("div", { class: "veil muted", role: "status", "data-testid": "map-waiting" });
    show(holder, veil);
    try {
      for (;;) {
        const data = await get("points", { a: current().id });
        if (!alive) return;
        if (data.ready) { closed = started(holder, data, address); return; }
        const { what, done, total } = data.work;
        show(veil, el("p", {}, "Computing the map; this happens only once."), el("progress", { max: 1, value: total ? done / total : 0 }), el("p", {}, what || "waiting"));
        await new Promise((then) => setTimeout(then, 400));
        if (!alive) return;
      }
    } catch (error) { if (alive) show(veil, el("p", { class: "error", "data-testid": "map-error" }, error.message)); }
  }
}

function started(holder, data, address) {
  const n = data.src.words.length, m = data.tgt.words.length, all = n + m;
  const sideOf = (i) => (i < n ? "src" : "tgt");
  const wordAt = (i) => (i < n ? data.src.words[i] : data.tgt.words[i - n]);
  const textAt = (i) => { const side = i < n ? data.src : data.tgt; return side.texts ? side.texts[i < n ? i : i - n] : wordAt(i); };
  for (const side of ["src", "tgt"]) if (data[side].texts) data[side].words.forEach((word, k) => { if (!texts[side].has(word)) texts[side].set(word, data[side].texts[k]); });
  const categories = Object.entries(data.categories).map(([name, values]) => [`meta:${name}`, name, values]);
  const colorings_ = [...COLORINGS, ...categories];
  const own = (i) => (i < n ? data.src : data.tgt), at = (i) => (i < n ? i : i - n);
  const partnerOf = (i) => { const p = i < 0 ? -1 : own(i).partner[at(i)]; return p < 0 ? -1 : (i < n ? n + p : p); };
  const xy = new Float32Array(2 * all);
  for (let i = 0; i < all; i += 1) { xy[2 * i] = own(i).x[at(i)] / data.grid; xy[2 * i + 1] = own(i).y[at(i)] / data.grid; }

  const state = {
    color: colorings_.some(([name]) => name === address.color) ? address.color : "language",
    show: SHOWN.some(([name]) => name === address.show) ? address.show : "all",
    lines: address.lines === "1", lasso: false, x: Number(address.x) || 0.5, y: Number(address.y) || 0.5,
    z: Math.min(LARGEST, Math.max(SMALLEST, Number(address.z) || 1)), selected: -1,
  };

  // ---------------------------------------------------------------- elements
  const canvas = el("canvas", { class: "points", "data-testid": "map", tabindex: "0", role: "application",
    "aria-label": `Map of ${whole(n)} words of ${data.src.name} and ${whole(m)} of ${data.tgt.name}. Arrow keys pan, plus and minus zoom; the table has the same pairs as text.` });
  const labels = el("canvas", { class: "labels", "aria-hidden": "true" });
  const tip = el("div", { class: "tip", hidden: true, "data-testid": "tip" });
  const legend = el("div", { class: "legend", "data-testid": "legend" });
  const panel = el("aside", { class: "panel", "data-testid": "panel", "aria-label": "Chosen words", hidden: true });
  const lexicon = current().lexicon !== null;
  const button = (test, label, title, action) => el("button", { type: "button", "data-testid": test, title, "aria-label": title, onclick: action }, label);
  const linesButton = button("lines", "Lines", "lines between pairs in view (e)", () => set({ lines: !state.lines }));
  const lassoButton = button("lasso", "Lasso", "draw around words (l), or drag with Shift", () => set({ lasso: !state.lasso }));
  const colorings = choice("Colour", "color", colorings_.filter(([name]) => lexicon || name !== "right"), state.color, (color) => set({ color }));
  const find = el("input", { type: "search", "data-search": true, "data-testid": "map-search", "aria-label": "Find a word on the map", placeholder: "Find on the map", autocomplete: "off" });
  const list = el("datalist", { id: "on-the-map" });
  find.setAttribute("list", "on-the-map");
  find.addEventListener("input", async () => {
    const typed = find.value.trim();
    if (!typed) return;
    const answers = await Promise.all(["src", "tgt"].map((side) => get("complete", { a: current().id, side, q: typed, n: 5 })));
    show(list, answers.flatMap(({ words }, place) => words.map((word) => el("option", { value: word, label: [data.src.name, data.tgt.name][place] }))));
  });
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") seek(find.value.trim()); });
  const controls = el("div", { class: "controls" }, find, list, colorings,
    choice("Show", "shown", SHOWN.filter(([name]) => lexicon || name !== "wrong"), state.show, (value) => set({ show: value })), linesButton, lassoButton,
    button("zoom-in", "+", "zoom in (+)", () => zoom(1.6)), button("zoom-out", "−", "zoom out (−)", () => zoom(1 / 1.6)),
    button("home", "All", "all of it (0)", home), button("picture", "PNG", "download a picture", picture));
  const stage = el("div", { class: "stage" }, canvas, labels, controls, legend, tip);
  show(holder, stage, panel);
  let points;
  try { points = new Points(canvas); } catch (error) { show(stage, el("div", { class: "veil error", "data-testid": "map-error" }, error.message)); return () => {}; }
  points.setPlaces(xy);
  // Both sides take turns, rare ones first, so that neither hides the other and frequent ones are on top.
  const order = Array.from({ length: all }, (_, i) => i).sort((a, b) => at(b) - at(a) || a - b);
  points.setOrder(Uint32Array.from(order));
  const grid = gridOf(xy, all);
  const context = labels.getContext("2d");

  // ---------------------------------------------------------------- colours and sizes
  let palette = {}, chosen = null;  // chosen: what the lasso holds; the rest is dimmed
  function colorsOf() {
    const styles = getComputedStyle(document.documentElement);
    const rgb = (name) => { context.fillStyle = styles.getPropertyValue(name).trim(); const hex = context.fillStyle; return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)); };
    palette = { src: rgb("--src"), tgt: rgb("--tgt"), yes: rgb("--yes"), other: rgb("--other"), soft: rgb("--soft"), ink: styles.getPropertyValue("--ink").trim(), paper: styles.getPropertyValue("--paper").trim(), dark: styles.colorScheme === "dark" };
    // Twelve hues of two lightnesses, told apart by the legend and the tip as well.
    palette.many = Array.from({ length: 12 }, (_, place) => { context.fillStyle = `hsl(${(place * 150) % 360} 65% ${palette.dark ? (place % 2 ? 75 : 60) : (place % 2 ? 30 : 45)}%)`; return [1, 3, 5].map((at_) => parseInt(context.fillStyle.slice(at_, at_ + 2), 16)); });
  }
  // From low to high confidence: the ramp differs in lightness too, for readers who see no colours.
  const ramp = (share) => {
    const stops = palette.dark ? [[92, 66, 110], [70, 120, 150], [160, 220, 130]] : [[205, 150, 190], [80, 130, 190], [10, 90, 90]];
    const s = Math.min(1.999, Math.max(0, 2 * share)), k = Math.floor(s), f = s - k;
    return stops[k].map((c, channel) => Math.round(c + f * (stops[k + 1][channel] - c)));
  };
  function fits(i) {
    const side = own(i), k = at(i);
    if (state.show === "hubs") return side.occurrences[k] >= data.hub;
    if (state.show === "orphans") return side.occurrences[k] === 0;
    if (state.show === "mutual") return side.mutual[k] === 1;
    if (state.show === "wrong") return side.right[k] === 2;
    return true;
  }
  function colorOf(i) {
    const side = own(i), k = at(i);
    if (state.color === "confidence") return side.confidence[k] < 0 ? palette.soft : ramp(side.confidence[k] / 100);
    if (state.color === "right") return [palette.soft, palette.yes, palette.other][side.right[k]];
    const category = categories.find(([name]) => name === state.color);
    if (category) {
      const value = side.metadata ? category[2].indexOf(side.metadata[k][category[1]]) : -1;
      return value < 0 ? palette.soft : palette.many[value % palette.many.length];
    }
    return palette[sideOf(i)];
  }
  function looks() {
    const colors = new Uint8Array(4 * all), sizes = new Float32Array(all);
    for (let i = 0; i < all; i += 1) {
      const good = fits(i) && (!chosen || chosen.has(i)), known = state.color === "language" || colorOf(i) !== palette.soft;
      colors.set(colorOf(i), 4 * i);
      colors[4 * i + 3] = good ? (known ? 215 : 90) : 18;
      const often = 1 + 1.6 / (1 + at(i) / 300);
      const many = state.show === "hubs" && good ? Math.min(3, Math.sqrt(own(i).occurrences[at(i)] / data.hub)) : 1;
      sizes[i] = good ? often * many : 1;
    }
    points.setLooks(colors, sizes);
    drawLegend();
  }
  function drawLegend() {
    const note = data.near === null ? null : el("p", { class: "small", "data-testid": "near" }, `${percent(data.near)} of mutual pairs are among each other's ${data.among} nearest here. The layout draws pairs together, so that both sides mix says nothing by itself.`);
    drawColors();
    if (note) legend.append(note);
  }
  function drawColors() {
    const dot = (color, text) => { const node = el("span", { class: "dot" }); node.style.background = `rgb(${color})`; return [node, text]; };
    if (state.color === "language") show(legend, dot(palette.src, data.src.name), dot(palette.tgt, data.tgt.name));
    else if (state.color === "right") show(legend, dot(palette.yes, "in the lexicon"), dot(palette.other, "lexicon has other translations"), dot(palette.soft, "word not in the lexicon"));
    else if (state.color.startsWith("meta:")) show(legend, categories.find(([name]) => name === state.color)[2].flatMap((value, place) => dot(palette.many[place], value || "(none)")));
    else {
      const strip = el("span", { class: "ramp" });
      strip.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map((s) => `rgb(${ramp(s)})`).join(", ")})`;
      show(legend, "confidence 0 %", strip, "100 %");
    }
  }

  // ---------------------------------------------------------------- the view
  const size = () => ({ w: stage.clientWidth, h: stage.clientHeight });
  const span = () => Math.min(size().w, size().h) * 0.94 * state.z;  // size of the whole map in pixels
  const toScreen = (i) => { const { w, h } = size(), s = span(); return [(xy[2 * i] - state.x) * s + w / 2, (xy[2 * i + 1] - state.y) * s + h / 2]; };
  const toPlane = (px, py) => { const { w, h } = size(), s = span(); return [(px - w / 2) / s + state.x, (py - h / 2) / s + state.y]; };
  let scheduled = 0, settle = 0, labelled = [], ring = null;
  // Where the labels were drawn: while the user drags the map, they are moved, not drawn again.
  let labelsAt = null, drawn = null, ratio = 1;

  function draw() { if (!scheduled) scheduled = requestAnimationFrame(frame); }
  function frame() {
    scheduled = 0;
    const { w, h } = size(), s = span();
    if (!moveDrawn(w, h, s)) render(w, h, s);
    if (labelsAt && labelsAt.z === state.z && labelsAt.w === w && labelsAt.h === h && !ring) {
      labels.style.transform = `translate(${(labelsAt.x - state.x) * s}px, ${(labelsAt.y - state.y) * s}px)`;
    } else {
      drawLabels(ratio, w, h);
      labels.style.transform = "";
      labelsAt = { x: state.x, y: state.y, z: state.z, w, h };
    }
    holder.dataset.frames = String(Number(holder.dataset.frames || 0) + 1);
  }
  function render(w, h, s) {
    canvas.style.transform = "";
    ratio = points.resize();
    const [wide, high] = [w * (1 + 2 * BEYOND), h * (1 + 2 * BEYOND)];
    points.draw(new Float32Array([2 * s / wide, -2 * s / high, -2 * s * state.x / wide, 2 * s * state.y / high]), ratio * Math.min(5, 1.9 + 0.55 * Math.log2(1 + state.z)),
      new Float32Array([...palette.soft.map((c) => c / 255), Math.min(0.55, 0.16 + 0.04 * state.z)]));
    drawn = { x: state.x, y: state.y, w, h, s };
    holder.dataset.drawn = String(Number(holder.dataset.drawn || 0) + 1);
  }
  // The picture is larger than the view. While it covers the view, it is moved and scaled, not drawn again.
  function moveDrawn(w, h, s) {
    if (!drawn || drawn.w !== w || drawn.h !== h) return false;
    const dx = (drawn.x - state.x) * s, dy = (drawn.y - state.y) * s, grown = s / drawn.s;
    const covers = (0.5 + BEYOND) * grown * w >= 0.5 * w + Math.abs(dx) && (0.5 + BEYOND) * grown * h >= 0.5 * h + Math.abs(dy);
    if (!covers || grown > 1.7 || grown < 0.75) return false;
    canvas.style.transform = `translate(${dx}px, ${dy}px) scale(${grown})`;
    return true;
  }
  function moved() {
    state.x = Math.min(1.2, Math.max(-0.2, state.x));
    state.y = Math.min(1.2, Math.max(-0.2, state.y));
    draw();
    clearTimeout(settle);
    settle = setTimeout(settled, 140);
  }
  function settled() {
    chooseLabels();
    chooseLines();
    remember();
    labelsAt = drawn = null;
    draw();
  }
  function remember() {
    const home_ = state.z === 1 && state.x === 0.5 && state.y === 0.5;
    note({ color: state.color === "language" ? undefined : state.color, show: state.show === "all" ? undefined : state.show, lines: state.lines ? "1" : undefined,
      x: home_ ? undefined : state.x.toFixed(4), y: home_ ? undefined : state.y.toFixed(4), z: home_ ? undefined : state.z.toFixed(2),
      w: state.selected >= 0 ? `${sideOf(state.selected)}:${wordAt(state.selected)}` : undefined });
    holder.dataset.zoom = state.z.toFixed(3);
    holder.dataset.x = state.x.toFixed(4);
    holder.dataset.y = state.y.toFixed(4);
    holder.dataset.lines = String(points.lineCount / 2);
  }
  function zoom(factor, px = size().w / 2, py = size().h / 2) {
    const [bx, by] = toPlane(px, py);
    state.z = Math.min(LARGEST, Math.max(SMALLEST, state.z * factor));
    const [ax, ay] = toPlane(px, py);
    state.x += bx - ax;
    state.y += by - ay;
    moved();
  }
  function pan(dx, dy) { state.x -= dx / span(); state.y -= dy / span(); moved(); }
  function home() { Object.assign(state, { x: 0.5, y: 0.5, z: 1 }); moved(); }

  function* inView(margin = 0) {
    const { w, h } = size(), [x0, y0] = toPlane(-margin, -margin), [x1, y1] = toPlane(w + margin, h + margin);
    for (let i = 0; i < Math.max(n, m); i += 1) {
      for (const k of [i < n ? i : -1, i < m ? n + i : -1]) {
        if (k >= 0 && xy[2 * k] >= x0 && xy[2 * k] <= x1 && xy[2 * k + 1] >= y0 && xy[2 * k + 1] <= y1) yield k;
      }
    }
  }
  const ends = new Float32Array(4 * MOST_LINES);
  function chooseLines() {
    let length = 0;
    const drawn = new Set();
    if (state.lines) {
      for (const i of inView()) {
        if (length >= ends.length) break;
        const p = partnerOf(i);
        // Only mutual pairs: other lines cross the whole map. Each line is drawn once, from the source word.
        if (p < 0 || !fits(i) || !own(i).mutual[at(i)] || drawn.has(p)) continue;
        drawn.add(i);
        ends.set([xy[2 * i], xy[2 * i + 1], xy[2 * p], xy[2 * p + 1]], length);
        length += 4;
      }
    } else if (state.selected >= 0 && partnerOf(state.selected) >= 0) {
      const i = state.selected, p = partnerOf(i);
      ends.set([xy[2 * i], xy[2 * i + 1], xy[2 * p], xy[2 * p + 1]], 0);
      length = 4;
    }
    points.setLines(ends, length);
  }
  const widths = new Map();
  function widthOf(text) {
    if (!widths.has(text)) { context.font = "12px system-ui, sans-serif"; widths.set(text, context.measureText(text).width); }
    return widths.get(text);
  }
  function chooseLabels() {
    const found = [], { w, h } = size();
    const boxes = [state.selected, partnerOf(state.selected)].filter((i) => i >= 0).map((i) => {
      const [px, py] = toScreen(i);
      return [px - 10, py, px + 20 + 1.15 * widthOf(short(textAt(i)))];
    });
    for (const i of inView(-8)) {
      if (found.length >= MOST_LABELS) break;
      if (!fits(i) || i === state.selected || i === partnerOf(state.selected)) continue;
      const [px, py] = toScreen(i);
      if (py < 48 || px > w - 20 || py > h - 12) continue;
      const right = px + 9 + widthOf(short(textAt(i)));
      if (boxes.some(([x0, y0, x1]) => px < x1 && right > x0 && Math.abs(py - y0) < 15)) continue;
      boxes.push([px, py, right]);
      found.push(i);
    }
    labelled = found;
  }
  function drawLabels(ratio, w, h) {
    if (labels.width !== Math.round(w * ratio) || labels.height !== Math.round(h * ratio)) { labels.width = Math.round(w * ratio); labels.height = Math.round(h * ratio); }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = palette.paper;
    for (const i of labelled) {
      const [px, py] = toScreen(i), text = short(textAt(i));
      context.strokeText(text, px + 5, py);
      context.fillStyle = state.color === "language" ? `rgb(${palette[sideOf(i)]})` : palette.ink;
      context.fillText(text, px + 5, py);
    }
    if (state.selected >= 0) {
      for (const i of [state.selected, partnerOf(state.selected)].filter((each) => each >= 0)) {
        const [px, py] = toScreen(i), text = short(textAt(i));
        context.beginPath();
        context.strokeStyle = palette.ink;
        context.lineWidth = 2;
        context.arc(px, py, i === state.selected ? 9 : 7, 0, 7);
        context.stroke();
        context.font = "600 13px system-ui, sans-serif";
        context.lineWidth = 4;
        context.strokeStyle = palette.paper;
        context.strokeText(text, px + 12, py);
        context.fillStyle = `rgb(${palette[sideOf(i)]})`;
        context.fillText(text, px + 12, py);
      }
    }
    if (ring && ring.length > 1) {
      context.beginPath();
      ring.forEach(([px, py], k) => (k ? context.lineTo(px, py) : context.moveTo(px, py)));
      context.closePath();
      context.strokeStyle = palette.ink;
      context.lineWidth = 1.5;
      context.setLineDash([5, 4]);
      context.stroke();
      context.setLineDash([]);
    }
  }

  // ---------------------------------------------------------------- pointing
  function nearest(px, py, reach = 10) {
    const [cx, cy] = toPlane(px, py), r = reach / span();
    let best = -1, least = r * r;
    for (const i of near(grid, cx, cy, r)) {
      if (!fits(i)) continue;
      const d = (xy[2 * i] - cx) ** 2 + (xy[2 * i + 1] - cy) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }
  const place = (event) => { const box = stage.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const pointers = new Map();
  let travelled = 0, pinch = 0;
  canvas.addEventListener("pointerdown", (event) => {
    try { canvas.setPointerCapture(event.pointerId); } catch { /* the pointer has gone */ }
    pointers.set(event.pointerId, place(event));
    travelled = 0;
    pinch = 0;
    tip.hidden = true;
    ring = (state.lasso || event.shiftKey) && pointers.size === 1 ? [place(event)] : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event), before = pointers.get(event.pointerId);
    if (!before) { hover(px, py); return; }
    pointers.set(event.pointerId, [px, py]);
    travelled += Math.abs(px - before[0]) + Math.abs(py - before[1]);
    if (pointers.size === 2) {
      const [[ax, ay], [bx, by]] = [...pointers.values()], far = Math.hypot(ax - bx, ay - by);
      if (pinch) zoom(far / pinch, (ax + bx) / 2, (ay + by) / 2);
      pinch = far;
    } else if (ring) { ring.push([px, py]); draw(); } else pan(px - before[0], py - before[1]);
  });
  const up = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (ring) { lassoed(ring.map(([px, py]) => toPlane(px, py))); ring = null; labelsAt = drawn = null; draw(); return; }
    if (travelled < 5 && event.type === "pointerup") { const [px, py] = place(event); choose(nearest(px, py, event.pointerType === "touch" ? 22 : 12)); }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-Math.max(-80, Math.min(80, event.deltaMode ? 20 * event.deltaY : event.deltaY)) / 250), ...place(event));
  }, { passive: false });
  function hover(px, py) {
    const i = nearest(px, py);
    tip.hidden = i < 0;
    canvas.style.cursor = i < 0 ? "grab" : "pointer";
    if (i < 0) return;
    const p = partnerOf(i), sure = own(i).confidence[at(i)];
    show(tip, el("bdi", {}, textAt(i)), p < 0 ? "" : " → ", p < 0 ? "" : el("bdi", {}, textAt(p)), sure < 0 ? "" : ` ${sure} %`);
    tip.style.left = `${Math.min(px + 12, size().w - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.max(4, py - 32)}px`;
  }

  // ---------------------------------------------------------------- selected words
  async function choose(i) {
    state.selected = i;
    settled();
    if (i < 0) { panel.hidden = true; draw(); return; }
    const side = sideOf(i), word = wordAt(i), k = at(i), other = side === "src" ? "tgt" : "src";
    const occurrences = own(i).occurrences[k];
    const answer = await get("word", { a: current().id, side, w: word, k: 6 });
    if (state.selected !== i) return;
    panel.hidden = false;
    show(panel, el("h2", {}, el("a", { href: link("word", { side: side === "src" ? undefined : "tgt", w: word }), "data-testid": "panel-word" }, wordOf(word, side))),
      el("p", { class: "muted small" }, `${own(i).name}, rank ${whole(k + 1)}; `, occurrences === 0 ? "an orphan: it is the best translation of no word" : occurrences >= data.hub ? `a hub: ${occurrences} words have it as their best` : `${occurrences} ${occurrences === 1 ? "word has" : "words have"} it as their best`),
      answer.known ? el("ul", { "data-testid": "panel-translations" }, answer.translations.map((each) => el("li", {}, el("a", { href: link("word", { side: other === "src" ? undefined : "tgt", w: each.word }) }, wordOf(each.word, other)), el("span", { class: "muted" }, percent(each.confidence))))) : null,
      el("p", {}, el("button", { type: "button", onclick: () => choose(-1) }, "Close")));
    labelsAt = drawn = null;
    draw();
  }
  function lassoed(polygon) {
    const inside = [];
    for (let i = 0; i < all; i += 1) if (fits(i) && within(polygon, xy[2 * i], xy[2 * i + 1])) inside.push(i);
    chosen = inside.length ? new Set(inside) : null;
    set({ lasso: false });
    if (!inside.length) { toast("no word in there"); return; }
    const src = inside.filter((i) => i < n), pairs = inside.filter((i) => i < n && own(i).mutual[at(i)] && inside.includes(partnerOf(i)));
    const sure = src.length ? src.reduce((sum, i) => sum + data.src.confidence[i], 0) / src.length / 100 : null;
    const listed = inside.slice().sort((a, b) => at(a) - at(b)).slice(0, MOST_LISTED);
    panel.hidden = false;
    show(panel, el("h2", { "data-testid": "lassoed" }, `${whole(inside.length)} ${current().noun}`),
      el("p", { class: "muted small" }, `${whole(src.length)} of ${data.src.name}, ${whole(inside.length - src.length)} of ${data.tgt.name}; ${whole(pairs.length)} mutual pairs inside`, sure === null ? "" : `; mean confidence ${percent(sure)}`),
      el("ul", {}, listed.map((i) => el("li", {}, el("a", { href: link("word", { side: sideOf(i) === "src" ? undefined : "tgt", w: wordAt(i) }) }, wordOf(wordAt(i), sideOf(i))), el("span", { class: "muted" }, partnerOf(i) < 0 ? "" : short(textAt(partnerOf(i))))))),
      el("p", {}, el("button", { type: "button", onclick: () => release() }, "Close")));
    requestAnimationFrame(() => moved());
  }
  function release() {
    chosen = null;
    panel.hidden = true;
    set({});
  }
  async function seek(text) {
    if (!text) return;
    const wanted = text.toLowerCase();
    const where = (side) => { const exact = side.words.indexOf(text); return exact >= 0 || !side.texts ? exact : side.texts.findIndex((each) => each.toLowerCase().includes(wanted)); };
    const index = [where(data.src), where(data.tgt)];
    const i = index[0] >= 0 ? index[0] : index[1] >= 0 ? n + index[1] : -1;
    if (i < 0) {
      const found = (await Promise.all(["src", "tgt"].map((side) => get("complete", { a: current().id, side, q: text, n: 1 })))).flatMap(({ words }, place) => words.map((word) => [place, word]));
      const hit = found.map(([place, word]) => { const k = data[["src", "tgt"][place]].words.indexOf(word); return k < 0 ? -1 : place * n + k; }).find((k) => k >= 0);
      if (hit === undefined) { toast(`${text} is not on the map`, true); return; }
      goTo(hit);
      return;
    }
    goTo(i);
  }
  function goTo(i) {
    Object.assign(state, { x: xy[2 * i], y: xy[2 * i + 1], z: Math.max(state.z, 12) });
    choose(i);
    moved();
  }

  function set(changes) {
    Object.assign(state, changes);
    linesButton.setAttribute("aria-pressed", String(state.lines));
    lassoButton.setAttribute("aria-pressed", String(state.lasso));
    canvas.style.cursor = state.lasso ? "crosshair" : "grab";
    looks();
    settled();
  }
  function picture() {
    labelsAt = drawn = null;
    frame();
    const sheet = document.createElement("canvas");
    sheet.width = labels.width;
    sheet.height = labels.height;
    const brush = sheet.getContext("2d");
    brush.fillStyle = palette.paper;
    brush.fillRect(0, 0, sheet.width, sheet.height);
    brush.drawImage(canvas, -BEYOND * labels.width, -BEYOND * labels.height);
    brush.drawImage(labels, 0, 0);
    sheet.toBlob((blob) => { const anchor = el("a", { href: URL.createObjectURL(blob), download: "qwp-map.png" }); anchor.click(); URL.revokeObjectURL(anchor.href); });
  }

  const step = 60;
  app.keys = {
    ArrowLeft: () => pan(step, 0), ArrowRight: () => pan(-step, 0), ArrowUp: () => pan(0, step), ArrowDown: () => pan(0, -step),
    "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: home, e: () => set({ lines: !state.lines }), l: () => set({ lasso: !state.lasso }),
    c: () => { const names = colorings_.map(([name]) => name).filter((name) => lexicon || name !== "right"); const next = names[(names.indexOf(state.color) + 1) % names.length]; colorings.querySelector("select").value = next; set({ color: next }); },
    Escape: () => { if (chosen) release(); else choose(-1); },
  };
  const repaint = () => { colorsOf(); looks(); labelsAt = drawn = null; draw(); };
  const watcher = new ResizeObserver(() => moved());
  watcher.observe(stage);
  document.addEventListener("themechange", repaint);
  colorsOf();
  set({});
  if (address.w) {
    const [, side, word] = /^(src|tgt):(.*)$/s.exec(address.w) || [];
    const k = side ? data[side].words.indexOf(word) : -1;
    if (k >= 0) {
      const i = side === "src" ? k : n + k;
      if (!address.z) Object.assign(state, { x: xy[2 * i], y: xy[2 * i + 1], z: 14 });
      choose(i);
      moved();
    }
  }
  holder.dataset.ready = "yes";
  return () => { watcher.disconnect(); document.removeEventListener("themechange", repaint); cancelAnimationFrame(scheduled); clearTimeout(settle); points.close(); };
}

const short = (word) => (word.length > 18 ? `${word.slice(0, 17)}…` : word);

// A grid of the points, to find the one under the pointer.
function gridOf(xy, all) {
  const cells = Array.from({ length: CELLS * CELLS }, () => []);
  for (let i = 0; i < all; i += 1) cells[cell(xy[2 * i]) * CELLS + cell(xy[2 * i + 1])].push(i);
  return cells;
}
const cell = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(value * CELLS)));
function* near(grid, x, y, r) {
  for (let i = cell(x - r); i <= cell(x + r); i += 1) for (let j = cell(y - r); j <= cell(y + r); j += 1) yield* grid[i * CELLS + j];
}
function within(polygon, x, y) {
  let inside = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [xi, yi] = polygon[i], [xj, yj] = polygon[j];
    if ((yi > y) !== (yj > y) && x < (xj - xi) * (y - yi) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}
