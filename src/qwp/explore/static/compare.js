// Compares two alignments of the same languages: where they agree or differ, and which one is right.

import { get } from "./api.js";
import { app, current, go, link, note, pageOf } from "./app.js";
import { ANCHORS_UNKNOWN, bar, choice, el, judged, percent, show, whole, wordOf } from "./dom.js";

const PAGE = 50;

export async function open(main, address) {
  const all = app.overview.alignments;
  if (all.length < 2) { show(main, el("p", { class: "muted" }, "One alignment is open. ", el("code", {}, "qwp explore A B"), " compares two.")); return undefined; }
  const first = current().id;
  const state = { b: Number(address.b ?? all.find((each) => each.id !== first).id), shown: address.shown || "different", q: address.q || "", page: pageOf(address.page) };
  if (!all[state.b]) state.b = all.find((each) => each.id !== first).id;
  const summary = el("div", { class: "summary", "data-testid": "compare-summary" }), place = el("div", { class: "scroll" }), pager = el("div", { class: "pager" });
  const names = all.map((each) => [String(each.id), each.name]);
  const text = el("input", { type: "search", "data-search": true, "aria-label": "Filter", placeholder: `Filter ${current().noun}`, value: state.q, "data-testid": "compare-text", oninput: () => change({ q: text.value.trim() }) });
  const lexicon = current().lexicon !== null;
  show(main, el("h1", {}, "Compare"), el("div", { class: "filters" },
    choice("First", "compare-a", names, String(first), (a) => go("compare", { a, b: state.b })),
    choice("Second", "compare-b", names, String(state.b), (b) => change({ b: Number(b) })),
    choice("Words", "compare-shown", [["different", "translated differently"], ["same", "translated alike"], ["all", "all"],
      ...(lexicon ? [["first", "in the lexicon in the first only"], ["second", "in the lexicon in the second only"]] : [])], state.shown, (shown) => change({ shown })), text),
  summary, place, pager);
  let alive = true, requests = 0;

  function change(changes) { Object.assign(state, { page: 0 }, changes); load(!("q" in changes)); }

  async function load(push = false) {
    const request = ++requests;
    note({ b: state.b, shown: state.shown === "different" ? undefined : state.shown, q: state.q || undefined, page: state.page || undefined }, push);
    const found = await get("compare", { a: first, b: state.b, shown: state.shown, q: state.q, offset: state.page * PAGE, limit: PAGE });
    if (request !== requests || !alive) return;
    if (!found.ready) { show(summary, `Computing the pairs (${found.work.what || "waiting"}) …`); setTimeout(() => alive && load(), 500); return; }
    if (!found.rows.length && found.total) { state.page = Math.ceil(found.total / PAGE) - 1; await load(); return; }
    draw(found);
  }

  function draw(found) {
    const right = found.right.map((each) => (each ? ` (${percent(each.right / each.of)} right of ${whole(each.of)})` : ""));
    show(summary, el("p", {}, el("strong", {}, found.names[0]), right[0], " and ", el("strong", {}, found.names[1]), right[1],
      ` translate ${percent(found.same / found.words)} of ${whole(found.words)} ${current().noun} alike. `, el("span", { class: "muted", "data-testid": "compare-total" }, `${whole(found.total)} shown`)),
      found.left_out ? el("p", { class: "muted small", "data-testid": "left-out" }, `Right is counted without ${whole(found.left_out)} words whose pairs were anchors of one of the two or are accepted${found.right[0] ? "" : ": no words are left to score with"}.`) : null,
      found.anchors_known ? null : el("p", { class: "muted small" }, ANCHORS_UNKNOWN.slice(2)));
    const cells = (each) => [el("td", {}, wordOf(each.tgt, "tgt")), lexicon ? el("td", {}, judged(each.right)) : null, el("td", { class: "conf" }, bar(each.confidence))];
    show(place, el("table", { class: "pairs", "data-testid": "compare-table" },
      el("thead", {}, el("tr", {}, el("th", {}, current().languages.src), ...found.names.map((name) => el("th", { colspan: lexicon ? 3 : 2 }, name)))),
      el("tbody", {}, found.rows.map(([a, b]) => el("tr", { "data-testid": "compare-row" }, el("td", {}, el("a", { href: link("word", { a: first, w: a.src }) }, wordOf(a.src, "src"))), ...cells(a), ...cells(b))))));
    const pages = Math.ceil(found.total / PAGE);
    show(pager, pages > 1 ? [el("button", { type: "button", disabled: state.page === 0, onclick: () => { state.page -= 1; load(true); } }, "Previous"),
      el("span", { class: "muted" }, `page ${state.page + 1} of ${whole(pages)}`),
      el("button", { type: "button", disabled: state.page + 1 >= pages, onclick: () => { state.page += 1; load(true); } }, "Next")] : []);
  }

  await load();
  return () => { alive = false; };
}
