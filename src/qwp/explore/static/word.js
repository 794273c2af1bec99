// One word: search with completion, translations, the terms of their scores, neighbours, gold translations.

import { get, post } from "./api.js";
import { app, current, link, note } from "./app.js";
import { bar, card, el, judged, number, ordinal, percent, pinned, show, texts, toast, whole, wordOf } from "./dom.js";

const noun = () => (current().noun === "items" ? "an item" : "a word");
const other = (side) => (side === "src" ? "tgt" : "src");

export async function open(main, address) {
  const state = { side: address.side === "tgt" ? "tgt" : "src", word: address.w || "" };
  const results = el("div", { class: "results", "data-testid": "results" });
  app.shown = null;
  const search = searchBox(state, (word) => { state.word = word; ask(); });
  show(main, el("h1", { class: "hidden" }, "Word"), search.node, results);

  async function ask() {
    note({ side: state.side === "src" ? undefined : "tgt", w: state.word || undefined }, true);
    if (!state.word) { welcome(results); return; }
    const found = await get("word", { a: current().id, side: state.side, w: state.word });
    if (found.word === state.word && found.side === state.side) await render(results, found, state, ask);
    app.shown = found;
  }

  app.keys = {
    l: () => search.turn(),
    a: () => markBest("right"), r: () => markBest("wrong"), u: () => markBest("none"),
  };
  async function markBest(mark) {
    if (app.shown && app.shown.known) { await markPair(app.shown, app.shown.translations[0], mark); await ask(); }
  }
  await ask();
  if (!state.word) search.focus();
}

/** Marks a pair of a word and its translation. */
async function markPair(found, translation, mark) {
  const pair = found.side === "src" ? [found.word, translation.word] : [translation.word, found.word];
  const answer = await post("mark", { a: current().id, pairs: [pair], mark });
  toast(answer.written ? `${pair[0]} – ${pair[1]}: ${mark === "none" ? "no mark" : mark}` : "marked, but the folder cannot be written", !answer.written);
}

// ------------------------------------------------------------------ the search

export function searchBox(state, onChoice) {
  const languages = current().languages;
  const list = el("ul", { id: "completions", role: "listbox", "data-testid": "completions", "aria-label": "Completions", hidden: true });
  const input = el("input", {
    id: "search", type: "search", "data-testid": "search", "data-search": true, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "false", "aria-controls": "completions", "aria-autocomplete": "list",
    value: state.word, "aria-label": "A word",
  });
  const sides = el("div", { class: "switch", role: "radiogroup", "aria-label": "Language of the word" });
  let at = -1, requests = 0;

  function drawSides() {
    show(sides, ["src", "tgt"].map((side) => el("button", {
      type: "button", role: "radio", class: side, "aria-checked": String(side === state.side), "data-testid": `side-${side}`,
      onclick: () => { if (side !== state.side) turn(); },
    }, languages[side])));
    input.placeholder = `${noun() === "a word" ? "A word" : "An item"} of ${languages[state.side]}`;
  }
  function turn() {
    const best = app.shown && app.shown.known && app.shown.word === state.word && app.shown.translations[0];
    state.side = other(state.side);
    // Search from the other language: the best translation of the current word.
    if (best) { state.word = best.word; input.value = best.word; }
    drawSides();
    close();
    onChoice(state.word);
  }
  function close() { list.hidden = true; at = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); }
  // Leave the field, so that keys are shortcuts again; / returns to it.
  function take(word) { input.value = word; close(); input.blur(); onChoice(word); }
  function move(step) {
    const options = [...list.children];
    if (!options.length) return;
    at = (at + step + options.length) % options.length;
    options.forEach((option, place) => option.setAttribute("aria-selected", String(place === at)));
    input.setAttribute("aria-activedescendant", options[at].id);
  }
  async function complete() {
    const request = ++requests, typed = input.value.trim();
    if (!typed) { close(); return; }
    const { words } = await get("complete", { a: current().id, side: state.side, q: typed });
    if (request !== requests) return;
    show(list, words.map((word, place) => el("li", {
      id: `completion-${place}`, role: "option", "aria-selected": "false", "data-testid": "completion", "data-name": word,
      onmousedown: (event) => { event.preventDefault(); take(word); },
    }, wordOf(word, state.side))));
    at = -1;
    list.hidden = words.length === 0;
    input.setAttribute("aria-expanded", String(words.length > 0));
  }
  input.addEventListener("input", complete);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { event.preventDefault(); move(1); }
    else if (event.key === "ArrowUp") { event.preventDefault(); move(-1); }
    else if (event.key === "Enter") {
      requests += 1;
      const options = [...list.children];
      if (at >= 0 && options[at]) take(options[at].dataset.name);
      else if (current().noun === "items" && options.length === 1) take(options[0].dataset.name);
      else if (input.value.trim()) take(input.value.trim());
    } else if (event.key === "Escape") close();
  });
  drawSides();
  const node = el("div", { class: "search", role: "search" }, sides, el("div", { class: "combo" }, input, list));
  return { node, turn, focus: () => input.focus() };
}

function welcome(results) {
  const { languages, words } = current();
  show(results, el("p", { class: "muted hint" },
    `Type ${noun()} of ${languages.src} (${whole(words.src)} ${current().noun}) or ${languages.tgt} (${whole(words.tgt)}). `,
    el("kbd", {}, "l"), " switches the language, ", el("kbd", {}, "?"), " shows all shortcuts."));
}

// ------------------------------------------------------------------ the results

async function render(results, found, state, again) {
  if (!found.known) { unknown(results, found); return; }
  const to = other(found.side);
  show(results,
    el("p", { class: "head" }, wordOf(found.word, found.side, { "data-testid": "asked", class: `w big ${found.side}` }),
      el("span", { class: "muted" }, ` ${current().languages[found.side]}, rank ${whole(found.rank)}`),
      " ", el("a", { href: link("map", { w: `${found.side}:${found.word}` }), "data-testid": "on-map" }, "on the map")),
    facts(found.metadata),
    gold(found, to),
    translations(found, to, again),
    why(found, to),
    neighbours(found, to),
    await others(found));
}

function unknown(results, found) {
  const hints = found.hints.map((hint) => el("a", { href: link("word", { side: found.side === "src" ? undefined : "tgt", w: hint }) }, wordOf(hint, found.side)));
  show(results, el("div", { class: "card", role: "alert", "data-testid": "unknown" }, el("p", {}, `${found.message}.`),
    hints.length ? el("p", {}, "There is ", hints.flatMap((hint, place) => (place ? [", ", hint] : [hint])), ".") : null,
    found.other_side ? el("p", {}, el("a", { href: link("word", { side: found.side === "src" ? "tgt" : undefined, w: found.word }) },
      `It is a word of ${current().languages[other(found.side)]}.`)) : null));
}

function facts(metadata) {
  const rows = Object.entries(metadata).filter(([, value]) => value !== "");
  return rows.length ? el("dl", { class: "facts", "data-testid": "metadata" }, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])) : null;
}

function gold(found, to) {
  if (current().lexicon === null) return null;
  if (found.gold === null) return el("p", { class: "muted", "data-testid": "gold" }, "The lexicon does not have this word.");
  return el("p", { "data-testid": "gold" }, "Lexicon: ", found.gold.flatMap((answer, place) => [place ? ", " : "", wordOf(answer.word, to),
    el("span", { class: "muted" }, answer.rank === null ? " (not in the vectors)" : ` (ranked ${ordinal(answer.rank)})`)]));
}

function marks(found, translation, again) {
  const set = async (mark) => { await markPair(found, translation, translation.mark === mark ? "none" : mark); again(); };
  return el("span", { class: "marks" },
    el("button", { type: "button", class: "mark", "aria-pressed": String(translation.mark === "right"), "data-testid": "accept",
      "aria-label": `${translation.word} is right`, title: "right (a)", onclick: () => set("right") }, "✓"),
    el("button", { type: "button", class: "mark", "aria-pressed": String(translation.mark === "wrong"), "data-testid": "reject",
      "aria-label": `${translation.word} is wrong`, title: "wrong (r)", onclick: () => set("wrong") }, "✗"));
}

function translations(found, to, again) {
  const rows = found.translations.map((each, place) => el("tr", { "data-testid": "translation", class: place ? "" : "best" },
    el("td", { class: "figure muted" }, whole(each.csls_rank)),
    el("td", {}, el("a", { href: link("word", { side: to === "src" ? undefined : "tgt", w: each.word }), "data-testid": "translation-word" }, wordOf(each.word, to))),
    current().lexicon === null ? null : el("td", {}, judged(each.right)),
    el("td", { class: "conf" }, found.pinned && !place ? pinned() : bar(each.confidence)),
    el("td", { class: "figure wide" }, number(each.score)),
    el("td", { class: "back" }, each.back.flatMap((way, at) => [at ? ", " : "", way.word === found.word
      ? el("strong", {}, wordOf(way.word, found.side)) : wordOf(way.word, found.side)])),
    el("td", {}, marks(found, each, again))));
  return card("Translations", "translations", el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { class: "figure", title: "rank by CSLS" }, "Rank"), el("th", {}, current().languages[to]), current().lexicon === null ? null : el("th", { title: "what the lexicon says" }, el("span", { class: "wide" }, "Lexicon")),
      el("th", {}, "Conf", el("span", { class: "wide" }, "idence")), el("th", { class: "figure wide" }, "CSLS"), el("th", {}, "Back-translations"), el("th", {}, "Mark"))),
    el("tbody", {}, rows))), answerForm(found, to, again));
}

/** Makes a field for a right answer that is not in the list. */
function answerForm(found, to, again) {
  const list = el("datalist", { id: "answers" });
  const input = el("input", { type: "text", list: "answers", autocomplete: "off", spellcheck: "false", "data-testid": "answer", "aria-label": "Another right answer", oninput: async () => {
    const { words } = await get("complete", { a: current().id, side: to, q: input.value.trim() });
    show(list, words.map((word) => el("option", { value: word, label: texts[to].get(word) })));
  } });
  const accept = async (event) => {
    event.preventDefault();
    const word = input.value.trim();
    if (!word) return;
    const known = await get("word", { a: current().id, side: to, w: word, k: 1 });
    if (!known.known) { toast(known.message, true); return; }
    try { await markPair(found, { word }, "right"); } catch (error) { toast(error.message, true); return; }
    again();
  };
  return el("form", { class: "answer", onsubmit: accept }, el("label", {}, el("span", { class: "muted" }, "Another right answer: "), input), list, el("button", { type: "submit", "data-testid": "accept-answer" }, "Accept"));
}

function why(found, to) {
  const [best, second] = found.translations;
  const lead = second ? best.score - second.score : null;
  const most = Math.max(...found.translations.slice(0, 5).map((each) => 2 * each.cosine), 1e-6);
  const shown = found.translations.slice(0, 5);
  const parts = (each) => el("div", { class: "stack", role: "img",
    "aria-label": `twice the cosine ${number(2 * each.cosine)}, minus ${number(found.hubness)} and ${number(each.hubness)}, is ${number(each.score)}` },
  el("span", { class: "own", "width%": 100 * Math.max(0, found.hubness) / most }), el("span", { class: "theirs", "width%": 100 * Math.max(0, each.hubness) / most }),
  el("span", { class: "rest", "width%": 100 * Math.max(0, each.score) / most }));
  return card("Why this one", "why",
    found.pinned ? el("p", { "data-testid": "why-pinned" }, "You accepted ", wordOf(best.word, to), `, so it is the answer. By CSLS it is ranked ${ordinal(best.csls_rank)}.`)
      : el("p", {}, wordOf(best.word, to), second ? ` leads over ` : " is the only candidate.", second ? wordOf(second.word, to) : null,
      second ? ` by ${number(lead)}. ${reason(best, second, to)}` : null),
    el("div", { class: "scroll" }, el("table", { class: "why" },
      el("thead", {}, el("tr", {}, el("th", {}, "candidate"), el("th", { class: "figure" }, "cosine"), el("th", { class: "figure" }, "rank by cosine"),
        el("th", { class: "figure", title: "how close the word is to its ten nearest of the other language" }, "hubness of the word"),
        el("th", { class: "figure", title: "how close the candidate is to its ten nearest of the other language" }, "hubness of the candidate"),
        el("th", { class: "figure" }, "CSLS"), el("th", { class: "figure", title: "the rank of the word among the candidates of this one" }, "rank back"), el("th", {}, "terms"))),
      el("tbody", {}, shown.map((each) => el("tr", { "data-testid": "why-row" }, el("th", { scope: "row" }, wordOf(each.word, to)),
        el("td", { class: "figure" }, number(each.cosine)), el("td", { class: "figure" }, whole(each.cosine_rank)),
        el("td", { class: "figure own" }, `− ${number(found.hubness)}`), el("td", { class: "figure theirs" }, `− ${number(each.hubness)}`),
        el("td", { class: "figure strong" }, number(each.score)), el("td", { class: "figure" }, whole(each.back_rank)), el("td", { class: "stackcell" }, parts(each))))))),
    el("p", { class: "muted small" }, "CSLS is twice the cosine minus the hubness of both words, so that hubs win less often."));
}

function reason(best, second) {
  const nearer = best.cosine >= second.cosine, calmer = best.hubness <= second.hubness;
  if (nearer && calmer) return "It is nearer, and has less hubness.";
  if (nearer) return "It is nearer, which outweighs its greater hubness.";
  return "It is not the nearest, but has less hubness.";
}

function neighbours(found, to) {
  const { own, other: theirs, overlap } = found.neighbours;
  const item = (each, side, extra) => el("li", { class: each.shared ? "shared" : "" },
    el("a", { href: link("word", { side: side === "src" ? undefined : "tgt", w: each.word }) }, wordOf(each.word, side)), extra, el("span", { class: "muted figure" }, number(each.cosine, 2)));
  return card("Neighbours", "neighbours",
    el("div", { class: "sides" },
      el("div", {}, el("h3", {}, "around ", wordOf(found.word, found.side)), el("ol", { "data-testid": "neighbours-own" }, own.map((each) => item(each, found.side, el("span", { class: "to muted" }, " → ", wordOf(each.translation, to)))))),
      el("div", {}, el("h3", {}, "around ", wordOf(found.translations[0].word, to)), el("ol", { "data-testid": "neighbours-other" }, theirs.map((each) => item(each, to, null))))),
    el("p", { class: "muted small" }, `${percent(overlap)} of the neighbours on the left are translated into the neighbourhood on the right (bold).`));
}

async function others(found) {
  const all = app.overview.alignments.filter((each) => each.id !== current().id);
  if (!all.length) return null;
  const answers = await Promise.all(all.map((each) => get("word", { a: each.id, side: found.side, w: found.word, k: 5 })));
  return card("In the other alignments", "others", el("dl", { class: "pairs" }, all.flatMap((each, place) => {
    const answer = answers[place];
    return [el("dt", {}, el("a", { href: link("word", { a: each.id, side: found.side === "src" ? undefined : "tgt", w: found.word }) }, each.name)),
      el("dd", {}, answer.known ? answer.translations.slice(0, 5).flatMap((way, at) => [at ? ", " : "", wordOf(way.word, other(found.side)),
        at ? null : el("span", { class: "muted" }, ` (${percent(way.confidence)})`), " ", way.right === null ? null : judged(way.right)]) : "not in its vocabulary")];
  })));
}

