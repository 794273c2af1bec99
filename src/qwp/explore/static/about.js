// The quality and the provenance of an alignment: verdict, estimate, convergence, settings.

import { get } from "./api.js";
import { current } from "./app.js";
import { chart } from "./charts.js";
import { ANCHORS_UNKNOWN, card, el, number, percent, show, whole } from "./dom.js";

export async function open(main) {
  const found = await get("about", { a: current().id });
  const { quality, provenance, scores } = found;
  const estimate = quality.estimate;
  show(main, el("h1", {}, "About"),
    card("Verdict", "about-verdict", el("p", {}, el("span", { class: `chip ${quality.verdict}` }, quality.verdict), " ", found.explanation),
      list([
        ["P@1 against the lexicon", el("span", { "data-testid": "about-score" }, scores ? measured(scores) : "no lexicon was given (--lexicon FILE)")],
        ["Estimated accuracy", estimate ? share(estimate.overall) : "not estimated"],
        ...(estimate ? estimate.bands.map((band) => [`… of words ${whole(band.first)} to ${whole(band.last)}`, share(band.share)]) : []),
        ["Held-out agreement", `${number(quality.ratio, 2)} times the null, on ${whole(quality.n_words)} words`],
      ])),
    card("Convergence", "about-curves", found.curves.length ? el("div", { class: "charts" }, found.curves.map(chart)) : el("p", { class: "muted" }, "No curves were recorded.")),
    card("Provenance", "about-provenance", list([
      ["Folder", current().folder], ["Method", provenance.method], ["Version", provenance.version], ["Seed", String(provenance.seed)],
      ...["src", "tgt"].map((side) => [side === "src" ? "Source" : "Target", `${provenance[side].path || "not from a file"}, ${whole(provenance[side].n_words)} × ${provenance[side].dim}, sha256 ${provenance[side].sha256.slice(0, 12)}…`]),
      ["Initialization", provenance.initializer || provenance.config.start || "–"],
      ["Seconds", Object.entries(provenance.seconds || {}).map(([stage, seconds]) => `${stage} ${number(seconds, 1)}`).join(", ")],
    ]),
    el("details", {}, el("summary", {}, "All settings"), list(Object.entries(provenance.config).map(([name, value]) => [name, String(value)])))));
}

function measured(scores) {
  const left = scores.words ? `${percent(scores.p_at_1)} of ${whole(scores.words)} words` : "no words are left to score with";
  const out = scores.left_out ? `; ${whole(scores.left_out)} of ${whole(scores.covered)} covered words are left out, because their pairs were anchors of this alignment or are accepted` : `, all that both vocabularies cover of ${whole(scores.source_words)}`;
  return left + out + (scores.anchors_known ? "" : ANCHORS_UNKNOWN);
}

const share = (each) => `${percent(each.p1)} (${percent(each.low)} to ${percent(each.high)})`;
const list = (rows) => el("dl", { class: "facts" }, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
