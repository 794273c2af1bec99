// The table of pairs, and the view of suspect pairs: filter, sort, accept, reject, align again.

import { download, get, post } from "./api.js";
import { app, current, go, link, note, pageOf, refresh } from "./app.js";
import { ask, bar, choice, el, judged, number, percent, pinned, show, toast, whole, wordOf } from "./dom.js";

const PAGE = 50;
const REASONS = { margin: "low margin", "one-way": "not mutual", hub: "hub", overlap: "other neighbours" };
const FILTERS = ["q", "least", "most", "first", "last", "right", "mutual", "mark", "suspect", "column", "value"];

export async function open(main, address, view) {
  const suspects = view === "suspects";
  const defaults = suspects ? { sort: "suspicion", dir: "desc", suspect: "some", top: 200 } : { sort: "frequency", dir: "asc" };
  const query = { ...defaults, ...Object.fromEntries(Object.entries(address).filter(([name]) => ["sort", "dir", "page", ...FILTERS].includes(name))) };
  let rows = [], at = Number(address.row || 0), total = 0, alive = true, requests = 0;

  const body = el("tbody", { "data-testid": "rows" });
  const count = el("p", { class: "count", role: "status", "aria-live": "polite", "data-testid": "count" });
  const pager = el("div", { class: "pager" });
  const headings = el("thead");
  const corrections = el("div", { class: "corrections", "data-testid": "corrections" });
  const intro = suspects ? el("p", { class: "muted" }, "The 200 most suspicious pairs: confident ones that something contradicts come first. Reasons are: the second candidate is close (low margin), the target has another best word (not mutual), many words share the target (hub), or the neighbours of both words do not translate into each other.") : null;
  show(main, el("h1", {}, suspects ? "Suspects" : "Table"), intro, filters(), corrections, count,
    el("div", { class: "scroll" }, el("table", { class: "pairs", "data-testid": "table" }, headings, body)), pager);

  function filters() {
    const text = el("input", { type: "search", "data-testid": "filter-text", "data-search": true, "aria-label": "Filter by letters of either word", placeholder: `Filter ${current().noun}`, value: query.q || "", autocomplete: "off",
      oninput: () => change({ q: text.value.trim() }) });
    const range = (name, label, value) => {
      const input = el("input", { type: "number", min: 0, max: 100, step: 5, "data-testid": `filter-${name}`, "aria-label": label, value: Math.round(100 * (query[name] ?? value)),
        onchange: () => change({ [name]: Math.max(0, Math.min(100, Number(input.value) || 0)) / 100 }) });
      return input;
    };
    const rank = (name, label) => {
      const input = el("input", { type: "number", min: 1, step: 1, "data-testid": `filter-${name}`, "aria-label": label, placeholder: name, value: query[name] ?? "",
        onchange: () => change({ [name]: input.value === "" ? undefined : Math.max(1, Math.min(1e9, Math.round(Number(input.value)) || 0)) }) });
      return input;
    };
    return el("div", { class: "filters", role: "search" }, text,
      el("label", { class: "field" }, el("span", {}, "Confidence %"), el("span", { class: "range" }, range("least", "least confidence in percent", 0), "–", range("most", "highest confidence in percent", 1))),
      el("label", { class: "field" }, el("span", {}, "Rank"), el("span", { class: "range" }, rank("first", "rank of the most frequent source word"), "–", rank("last", "rank of the rarest source word"))),
      current().lexicon === null ? null : choice("Lexicon", "filter-right", [["any", "any"], ["right", "right"], ["wrong", "other translations listed"], ["unknown", "word not listed"]], query.right || "any", (right) => change({ right })),
      ...category(),
      choice("Mutual", "filter-mutual", [["any", "any"], ["yes", "yes"], ["no", "no"]], query.mutual || "any", (mutual) => change({ mutual })),
      choice("Mark", "filter-mark", [["any", "any"], ["none", "unmarked"], ["right", "accepted"], ["wrong", "rejected"]], query.mark || "any", (mark) => change({ mark })),
      choice("Suspect", "filter-suspect", [["any", "any"], ["some", "for any reason"], ...Object.entries(REASONS)], query.suspect || "any", (suspect) => change({ suspect })));
  }

  function change(changes) {
    Object.assign(query, changes, { page: undefined });
    at = 0;
    load(!("q" in changes));
  }

  function asking() {
    const args = { a: current().id, sort: query.sort, dir: query.dir, top: query.top };
    for (const name of FILTERS) if (query[name] !== undefined && query[name] !== "" && query[name] !== "any") args[name] = query[name];
    return args;
  }

  /** Makes the filter by a category of the source items. */
  function category() {
    const known = Object.entries(current().categories).flatMap(([name, values]) => values.map((value) => [name, value]));
    if (!known.length) return [];
    const at = known.findIndex(([name, value]) => name === query.column && value === query.value);
    return [choice("Metadata", "filter-metadata", [["", "any"], ...known.map(([name, value], place) => [String(place), `${name}: ${value}`])], String(at < 0 ? "" : at),
      (place) => change(place === "" ? { column: undefined, value: undefined } : { column: known[place][0], value: known[place][1] }))];
  }

  /** push: whether Back returns to what was shown before. */
  async function load(push = false) {
    const request = ++requests, page = pageOf(query.page);
    const shown = Object.fromEntries(["sort", "dir", ...FILTERS].map((name) => [name, query[name] === defaults[name] || query[name] === "any" ? undefined : query[name]]));
    note({ ...shown, page: page || undefined, row: at || undefined }, push);
    const found = await get("table", { ...asking(), offset: page * PAGE, limit: PAGE });
    if (request !== requests || !alive) return;
    if (!found.ready) { waiting(found.work); return; }
    ({ rows, total } = found);
    if (!rows.length && total) { query.page = Math.ceil(total / PAGE) - 1; await load(); return; }
    at = Math.min(at, Math.max(0, rows.length - 1));
    draw(found);
    correctionsBar(found.marks);
  }

  function waiting(work) {
    const share = work.total ? `, ${Math.round(100 * work.done / work.total)} %` : "";
    show(count, `Computing the pairs (${work.what || "waiting"}${share}) …`);
    setTimeout(() => alive && load(), 500);
  }

  function column(name, label, title, kind = "") {
    const sorted = query.sort === name;
    const first = ["frequency", "src", "tgt", "tgt_rank"].includes(name) ? "asc" : "desc";
    const next = sorted ? (query.dir === "asc" ? "desc" : "asc") : first;
    return el("th", { class: kind, "aria-sort": sorted ? (query.dir === "asc" ? "ascending" : "descending") : "none" },
      el("button", { type: "button", title, "data-testid": `sort-${name}`, onclick: () => change({ sort: name, dir: next }) },
        label, el("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (query.dir === "asc" ? " ↑" : " ↓") : "")));
  }

  function draw(found) {
    const { languages, lexicon } = current();
    show(headings, el("tr", {}, column("frequency", "#", "rank of the source word", "figure"), column("src", languages.src, "source word"), column("tgt", languages.tgt, "best translation"),
      lexicon === null ? null : el("th", { title: "what the lexicon says" }, el("span", { class: "wide" }, "Lexicon")), column("confidence", el("span", {}, "Conf", el("span", { class: "wide" }, "idence")), "the estimated chance that the pair is right"),
      column("margin", "Margin", "lead over the second candidate", "figure wide"), el("th", { class: "wide" }, "Mutual"),
      column("hub", "Hub", "source words that have the same translation", "figure wide"), column("overlap", "Overlap", "neighbours that are translated into the neighbourhood", "figure wide"),
      suspects ? el("th", {}, "Why") : column("score", "CSLS", "score", "figure wide"), el("th", {}, "Mark")));
    show(body, rows.map(line));
    show(count, found.matching > total ? `the ${whole(total)} most suspicious of ${whole(found.matching)} pairs with a reason` : `${whole(total)} of ${whole(found.all)} pairs`, total ? ` · ${whole(found.offset + 1)}–${whole(found.offset + rows.length)}` : "");
    const pages = Math.ceil(total / PAGE), page = pageOf(query.page);
    show(pager, pages > 1 ? [
      el("button", { type: "button", disabled: page === 0, "data-testid": "previous", onclick: () => turn(-1) }, "Previous"),
      el("span", { class: "muted" }, `page ${page + 1} of ${whole(pages)}`),
      el("button", { type: "button", disabled: page + 1 >= pages, "data-testid": "next", onclick: () => turn(1) }, "Next")] : [],
    el("a", { class: "button", href: download("pairs.tsv", asking()), "data-testid": "download-tsv" }, "Download TSV"));
    select(at, false);
  }

  function line(row, place) {
    const { lexicon } = current();
    return el("tr", { "data-testid": "row", class: row.mark ? `marked-${row.mark}` : "", tabindex: place === at ? "0" : "-1", onclick: () => select(place, false) },
      el("td", { class: "figure muted" }, whole(row.src_rank)),
      el("td", {}, el("a", { href: link("word", { w: row.src }) }, wordOf(row.src, "src"))),
      el("td", {}, el("a", { href: link("word", { side: "tgt", w: row.tgt }) }, wordOf(row.tgt, "tgt", { "data-testid": "row-tgt" }))),
      lexicon === null ? null : el("td", {}, judged(row.right)),
      el("td", { class: "conf" }, row.pinned ? pinned() : bar(row.confidence)),
      el("td", { class: "figure wide" }, number(row.margin)), el("td", { class: "wide" }, row.mutual ? "yes" : el("span", { class: "muted" }, "no")),
      el("td", { class: "figure wide" }, row.hub), el("td", { class: "figure wide" }, percent(row.overlap)),
      suspects ? el("td", { class: "why" }, row.reasons.map((name) => el("span", { class: "tag" }, REASONS[name]))) : el("td", { class: "figure wide" }, number(row.score)),
      el("td", { "data-testid": "mark" }, el("span", { class: "marks" },
        ...[["right", "✓", "accept"], ["wrong", "✗", "reject"]].map(([mark, sign, test]) => el("button", { type: "button", class: "mark", "data-testid": test, "aria-pressed": String(row.mark === mark),
          "aria-label": `${row.src} – ${row.tgt} is ${mark}`, onclick: (event) => { event.stopPropagation(); select(place, false); set(row.mark === mark ? "none" : mark, false); } }, sign)))));
  }

  let noting = 0;
  const noteRow = () => alive && note({ row: at || undefined });
  function select(place, focus = true) {
    if (!rows.length) return;
    at = Math.max(0, Math.min(rows.length - 1, place));
    [...body.children].forEach((node, number_) => { node.classList.toggle("here", number_ === at); node.tabIndex = number_ === at ? 0 : -1; });
    clearTimeout(noting);
    // Browsers limit how often the address may change: a held key writes it once.
    if (focus) noting = setTimeout(noteRow, 150); else noteRow();
    if (focus) { body.children[at].focus({ preventScroll: true }); body.children[at].scrollIntoView({ block: "nearest" }); }
  }

  async function turn(step, row = 0) {
    const before = pageOf(query.page), page = Math.max(0, Math.min(Math.ceil(total / PAGE) - 1, before + step));
    if (page === before) return;
    query.page = page || undefined;
    at = row;
    await load(true);
    scrollTo({ top: 0 });
    select(at);
  }
  // The keys go on with the next page after the last row.
  const next = () => (at + 1 < rows.length ? select(at + 1) : turn(1)), previous = () => (at ? select(at - 1) : turn(-1, PAGE - 1));

  async function set(mark, onwards = true) {
    const row = rows[at], place = at;
    if (!row) return;
    const before = row.mark;
    // Moves on at once, so that the next key marks the next pair.
    const draw = (value) => { row.mark = value; row.pinned = value === "right"; if (rows[place] === row) body.children[place].replaceWith(line(row, place)); };
    draw(mark === "none" ? null : mark);
    if (onwards) next();
    try {
      const answer = await post("mark", { a: current().id, pairs: [[row.src, row.tgt]], mark });
      correctionsBar(answer.marks);
      if (!answer.written) toast(`marked, but ${answer.folder} cannot be written`, true);
    } catch (error) {
      draw(before);
      toast(error.message, true);
    }
  }

  // ---------------------------------------------------------------- corrections

  function correctionsBar(marks) {
    current().marks = marks;
    const { lexicon } = current();
    show(corrections,
      el("span", { "data-testid": "marks" }, `${whole(marks.right)} accepted, ${whole(marks.wrong)} rejected`),
      el("a", { class: "button", href: download("corrections.tsv", { a: current().id }), "data-testid": "download-corrections" }, "Download lexicon"),
      lexicon === null ? null : el("button", { type: "button", "data-testid": "mark-by-lexicon", title: "accept pairs of the lexicon that both vocabularies have",
        onclick: byLexicon }, "Accept pairs of the lexicon …"),
      el("button", { type: "button", disabled: !marks.undoable, "data-testid": "undo", title: "take back the last change of the marks", onclick: () => changed("undo", "the last change is taken back") }, "Undo"),
      el("button", { type: "button", disabled: !marks.right && !marks.wrong, "data-testid": "clear", onclick: clear }, "Clear marks …"),
      el("button", { type: "button", class: "primary", disabled: marks.right < 20, "data-testid": "realign", title: marks.right < 20 ? "accept at least 20 pairs first" : "align the two spaces again, with these pairs as start and as anchors",
        onclick: realign }, "Align again with these pairs"),
      el("span", { class: "progress", "data-testid": "realigning", role: "status", "aria-live": "polite" }));
    follow();
  }

  async function changed(what, said, values = {}) {
    try {
      const answer = await post(what, { a: current().id, ...values });
      toast(answer.written ? said : `${said}, but ${answer.folder} cannot be written`, !answer.written);
    } catch (error) { toast(error.message, true); }
    await load();
  }

  async function byLexicon() {
    const counts = await get("lexicon-marks", { a: current().id });
    const part = await ask("Accept pairs of the lexicon?", "Accepted pairs are the answers from now on, and the anchors of the next alignment. Their words no longer count in any score. Accept half to measure the gain with the other half.",
      { half: `Accept ${whole(counts.half)} pairs of every second word`, all: `Accept all ${whole(counts.all)} pairs` });
    if (part) await changed("mark-by-lexicon", `${whole(counts[part])} pairs accepted`, { part });
  }

  async function clear() {
    const { right, wrong } = current().marks;
    if (await ask("Clear all marks?", `${whole(right)} accepted and ${whole(wrong)} rejected pairs lose their marks. Undo brings them back while the explorer runs.`, { clear: "Clear" })) await changed("clear", "all marks are cleared");
  }

  async function realign() {
    try { await post("realign", { a: current().id }); } catch (error) { toast(error.message, true); return; }
    follow();
  }

  let following = false;
  async function follow() {
    if (following) return;
    following = true;
    try {
      for (;;) {
        const { realigning } = await get("progress", { a: current().id });
        const place = corrections.querySelector("[data-testid=realigning]");
        if (!alive || !place || realigning === null) return;
        if (realigning.state === "working") {
          const share = realigning.total ? realigning.done / realigning.total : 0;
          show(place, el("progress", { max: 1, value: share }), ` ${realigning.what} ${Math.round(100 * share)} % `,
            el("button", { type: "button", onclick: () => post("stop", {}) }, "Stop"));
        } else if (realigning.state === "done") {
          if (realigning.made >= app.overview.alignments.length) await refresh();
          show(place, "Done: ", el("a", { href: link("compare", { a: realigning.of, b: realigning.made }), "data-testid": "compare-new" }, "compare it with the one before"),
            ", ", el("a", { href: link(app.view, { a: realigning.made }), "data-testid": "open-new" }, "go on with it"));
          return;
        } else {
          show(place, el("span", { class: "error" }, `Aligning again failed: ${realigning.message}`));
          return;
        }
        await new Promise((done) => setTimeout(done, 300));
      }
    } finally { following = false; }
  }

  app.keys = {
    j: next, ArrowDown: next, k: previous, ArrowUp: previous, "[": () => turn(-1), "]": () => turn(1),
    a: () => set("right"), r: () => set("wrong"), u: () => set("none"),
    Enter: (event) => { if (event.target.closest("a, button")) event.target.click(); else if (rows[at]) { noteRow(); go("word", { w: rows[at].src }); } },
  };
  await load();
  if (at && body.children[at]) body.children[at].scrollIntoView({ block: "center" });
  return () => { alive = false; };
}
