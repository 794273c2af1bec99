// All elements are made here. Words are data: text nodes only, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element. props: attributes, "class", and on… for listeners; children: nodes, texts or nothing. */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an SVG element. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else if (name === "width%") node.style.width = `${value}%`;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Replaces the children of a node. */
export function show(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

export const ANCHORS_UNKNOWN = ". Caution: this alignment was given known pairs that are not found beside it, so they may be among the scored words.";
export const number = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));
export const ordinal = (n) => {
  const suffix = n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th";
  return `${whole(n)}${suffix}`;
};
export const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);
export const whole = (value) => value.toLocaleString("en");

/** Texts of items that are not words, by name. */
export const texts = { src: new Map(), tgt: new Map() };
export function learn(found) {
  for (const side of ["src", "tgt"]) for (const [name, text] of Object.entries(found?.[side] || {})) texts[side].set(name, text);
}

/** Language codes of both sides, if their names are codes. */
export const languages = { src: null, tgt: null };
const CODE = /^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/;
export function speak(names) {
  for (const side of ["src", "tgt"]) languages[side] = CODE.test(names[side]) ? names[side] : null;
}

/** Makes a word with its language for screen readers and its own writing direction. */
export function wordOf(name, side, props = {}) {
  const text = texts[side].get(name);
  return el("bdi", { class: `w ${side}`, lang: languages[side], title: text === undefined ? null : `${name}: ${text}`, ...props }, text === undefined ? name : text);
}

/** Makes a bar for a share from 0 to 1, with its number. */
export function bar(share) {
  return el("span", { class: "bar", role: "img", "aria-label": `confidence ${percent(share)}` },
    el("span", { class: "fill", "width%": Math.max(0, Math.min(100, 100 * share)) }), el("span", { class: "value" }, percent(share)));
}

/** Makes the tag of an accepted answer. */
export const pinned = () => el("span", { class: "tag pinned", "data-testid": "pinned", title: "you accepted this answer" }, "accepted");

/** Makes the mark of an answer. A lexicon lists some translations, so an answer that it lacks need not be wrong. */
export function judged(right) {
  if (right === null || right === undefined) return el("span", { class: "muted", role: "img", "aria-label": "the lexicon does not have the word", title: "the lexicon does not have the word" }, "·");
  return right
    ? el("span", { class: "yes", role: "img", "aria-label": "right by the lexicon", title: "right by the lexicon" }, "✓")
    : el("span", { class: "muted", role: "img", "aria-label": "not in the lexicon, which has other translations", title: "not in the lexicon, which has other translations" }, "–");
}

let timer = 0;
/** Shows a message for a moment. */
export function toast(text, bad = false) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.classList.toggle("bad", bad);
  place.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => { place.hidden = true; }, bad ? 8000 : 3000);
}

/** Makes a select with choices [value, label]. */
export function choice(label, testid, choices, value, changed) {
  const select = el("select", { "data-testid": testid, "aria-label": label, onchange: () => changed(select.value) },
    ...choices.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
  return el("label", { class: "field" }, el("span", {}, label), select);
}

/** Asks a question in a dialog. Returns the value of the chosen button, or "" if the user cancels. */
export function ask(question, explanation, choices) {
  const answer = (value) => el("button", { type: "button", class: value ? "primary" : "", "data-testid": value ? `answer-${value}` : "cancel", onclick: () => dialog.close(value) }, value ? choices[value] : "Cancel");
  const dialog = el("dialog", { "aria-labelledby": "question", "data-testid": "question" }, el("h2", { id: "question" }, question), el("p", {}, explanation),
    el("p", { class: "answers" }, Object.keys(choices).map(answer), answer("")));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue); }));
}

/** Makes a card with a heading. */
export function card(title, testid, ...children) {
  return el("section", { class: "card", "data-testid": testid, "aria-label": title }, el("h2", {}, title), ...children);
}
