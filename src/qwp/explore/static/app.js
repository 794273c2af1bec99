// The frame of all views: addresses, the bar at the top, shortcuts, light and dark.

import { get } from "./api.js";
import { el, show, speak, texts, toast } from "./dom.js";
import * as about from "./about.js";
import * as compare from "./compare.js";
import * as map from "./map.js";
import * as table from "./table.js";
import * as word from "./word.js";

const VIEWS = {
  word: { title: "Word", key: "1", module: word },
  map: { title: "Map", key: "2", module: map },
  table: { title: "Table", key: "3", module: table },
  suspects: { title: "Suspects", key: "4", module: table },
  compare: { title: "Compare", key: "5", module: compare },
  about: { title: "About", key: "6", module: about },
};

/** State that all views share. address: arguments of the current view by name. */
export const app = { overview: null, view: "word", address: {}, hash: "", close: () => {}, keys: {} };

const main = document.getElementById("main");

function parsed() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path in VIEWS ? path : "word", address: Object.fromEntries(new URLSearchParams(query)) };
}

function hashOf(view, address) {
  const given = Object.entries(address).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/** Goes to a view with default arguments, except the alignment and those given. */
export function go(view, address = {}) {
  location.hash = hashOf(view, { a: app.address.a, ...address });
}

/** Returns the address of a view. */
export function link(view, address = {}) {
  return hashOf(view, { a: app.address.a, ...address });
}

/** Writes the state of the current view into the address, without leaving the view. push: as a step that Back undoes. */
export function note(changes, push = false) {
  if (location.hash !== app.hash) return;  // the user is leaving this view
  const before = hashOf(app.view, app.address);
  app.address = { ...app.address, ...changes };
  const after = hashOf(app.view, app.address);
  if (push && after !== before) history.pushState(null, "", after);
  else history.replaceState(history.state, "", after);
  app.hash = location.hash;
  for (const anchor of document.querySelectorAll("#nav a")) anchor.href = link(anchor.dataset.view);
}

export const current = () => app.overview.alignments[Number(app.address.a || 0)] || app.overview.alignments[0];

/** Reloads the list of alignments after one was added or marks have changed. */
export async function refresh() {
  app.overview = await get("overview");
  head();
}

function head() {
  const all = app.overview.alignments, here = current();
  speak(here.languages);
  main.classList.toggle("items", here.noun === "items");
  const select = document.getElementById("alignment");
  show(select, all.map((each) => el("option", { value: each.id, selected: each.id === here.id }, each.name)));
  select.hidden = all.length < 2;
  const chip = document.getElementById("verdict");
  chip.textContent = here.verdict;
  chip.className = `chip ${here.verdict}`;
  chip.title = here.short;
  chip.hidden = false;
  document.title = `${here.name} – qwp explore`;
  show(document.getElementById("nav"), Object.entries(VIEWS)
    .filter(([name]) => name !== "compare" || all.length > 1)
    .map(([name, { title, key }]) => el("a", {
      href: link(name), "data-view": name, "data-testid": `nav-${name}`, title: `${title} (${key})`,
      "aria-current": name === app.view ? "page" : null,
    }, here.noun === "items" && name === "word" ? "Item" : title)));
}

/** Returns the number of a page in an address. */
export const pageOf = (text) => Math.max(0, Math.floor(Number(text) || 0));

async function route() {
  const { view, address } = parsed();
  const scroll = history.state?.scroll;
  app.close();
  app.close = () => {};
  app.keys = {};
  if ((app.address.a || 0) !== (address.a || 0)) for (const side of ["src", "tgt"]) texts[side].clear();
  app.view = view;
  app.address = address;
  app.hash = location.hash;
  main.dataset.view = view;
  try {
    if (app.overview === null) app.overview = await get("overview");
    if (Number(address.a || 0) >= app.overview.alignments.length) app.address.a = undefined;
    head();
    watch();
    const opened = await VIEWS[view].module.open(main, app.address, view);
    if (app.view === view) app.close = opened || (() => {});
    main.dataset.ready = view;
    if (app.view === view) {
      const title = document.querySelector("#main h1")?.textContent || VIEWS[view].title;
      document.title = `${title} – ${current().name} – qwp explore`;
      if (scroll !== undefined) scrollTo({ top: scroll, behavior: "instant" });
      else if (!address.row) scrollTo({ top: 0, behavior: "instant" });
    }
  } catch (error) {
    show(main, el("p", { class: "error", role: "alert", "data-testid": "error" }, error.message));
  }
}

// ------------------------------------------------------------------ work in the background

const LABELS = { map: "laying out the map" };
let watching = false;

/** Shows the progress of the work in the background. */
async function watch() {
  if (watching) return;
  watching = true;
  const place = document.getElementById("work");
  try {
    for (;;) {
      const { work } = await get("progress", { a: current().id });
      const busy = work.state === "working" || work.state === "waiting";
      place.hidden = !busy && work.state !== "failed";
      if (work.state === "failed") place.textContent = `The table or the map failed: ${work.message}`;
      if (!busy) break;
      const share = work.total ? ` ${Math.round(100 * work.done / work.total)} %` : "";
      place.textContent = `Preparing table and map: ${LABELS[work.what] || work.what || "waiting"}${share}`;
      await new Promise((done) => setTimeout(done, 400));
    }
  } catch { place.hidden = true; } finally { watching = false; }
}

// ------------------------------------------------------------------ shortcuts

const EVERYWHERE = [
  ["1 … 6", "views"], ["/", "search"], ["t", "light or dark"], ["?", "shortcuts"], ["Esc", "leave a field, close"],
];
const OF_VIEWS = {
  word: [["l", "other language"], ["a", "accept the best translation"], ["r", "reject it"], ["u", "remove the mark"]],
  table: [["j k ↓ ↑", "next, previous pair"], ["a", "accept: the pair is right"], ["r", "reject: it is wrong"],
    ["u", "remove the mark"], ["Enter", "open the word"], ["[ ]", "previous, next page"]],
  map: [["← → ↑ ↓", "pan"], ["+ −", "zoom"], ["0", "whole map"], ["c", "next colouring"], ["e", "lines"], ["l", "lasso"]],
};
OF_VIEWS.suspects = OF_VIEWS.table;

function help() {
  const dialog = document.getElementById("shortcuts");
  const rows = [...(OF_VIEWS[app.view] || []), ...EVERYWHERE];
  show(dialog, el("h2", { id: "shortcuts-title" }, "Keyboard"),
    el("dl", { class: "keys" }, rows.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]).flat()),
    el("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

function theme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", document.documentElement.dataset.theme); } catch { /* storage is disabled: the choice lasts until the page closes */ }
  document.dispatchEvent(new Event("themechange"));
}

const typing = (target) => target.closest("input, select, textarea, dialog") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
  if (typing(event.target)) return;
  const own = app.keys[event.key];
  const view = Object.entries(VIEWS).find(([, { key }]) => key === event.key);
  const action = own || {
    "?": help, t: theme, "/": () => { const field = document.querySelector("[data-search]"); if (field) { field.focus(); field.select(); } else go("word"); },
  }[event.key] || (view && (view[0] !== "compare" || app.overview.alignments.length > 1) ? () => go(view[0]) : null);
  if (action) { event.preventDefault(); action(event); }
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.getElementById("help").addEventListener("click", help);
try { if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme"); } catch { /* nothing is set */ }
document.getElementById("theme").addEventListener("click", theme);
document.getElementById("alignment").addEventListener("change", (event) => {
  location.hash = hashOf(app.view, { ...app.address, a: event.target.value });
});
addEventListener("hashchange", route);
// Content arrives after a view is opened, so the scroll position is restored here, not by the browser.
history.scrollRestoration = "manual";
let scrolled = 0;
addEventListener("scroll", () => {
  clearTimeout(scrolled);
  scrolled = setTimeout(() => history.replaceState({ scroll: scrollY }, ""), 60);
});

// ------------------------------------------------------------------ a server that stopped

let lost = false;
document.addEventListener("serverlost", async () => {
  if (lost) return;
  lost = true;
  const banner = document.getElementById("lost");
  banner.hidden = false;
  for (;;) {
    await new Promise((done) => setTimeout(done, 1000));
    try {
      app.overview = await get("overview");
      break;
    } catch (error) {
      show(banner, error.status === 403 ? "The explorer runs again with another secret: open the address that it printed."
        : "The explorer does not answer. Start it again with the same --port and --token-file, and this page goes on; otherwise open the address that it prints.");
    }
  }
  lost = false;
  banner.hidden = true;
  route();
});
addEventListener("unhandledrejection", (event) => {
  if (event.reason && event.reason.name !== "AbortError") toast(event.reason.message || String(event.reason), true);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
route();
