// Requests to the server. All addresses are relative to the address of the page, which contains the token.

import { learn } from "./dom.js";

const base = new URL("./", location.href.split("#")[0]);

async function parsed(response) {
  const values = await response.json().catch(() => ({ error: `the server answered with status ${response.status}` }));
  if (!response.ok) throw Object.assign(new Error(values.error || `the server answered with status ${response.status}`), { status: response.status });
  if (values.texts) learn(values.texts);
  return values;
}

async function asked(url, options) {
  try { return await fetch(url, options); } catch (error) {
    if (error.name === "AbortError") throw error;
    document.dispatchEvent(new Event("serverlost"));
    throw new Error("the explorer does not answer");
  }
}

function address(path, args) {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(args)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

export async function get(path, args = {}, signal = undefined) {
  return parsed(await asked(address(`api/${path}`, args), { signal }));
}

// Changes are sent one after the other, so that they arrive in the order in which the user made them.
let last = Promise.resolve();

export function post(path, values) {
  const send = async () => parsed(await asked(new URL(`api/${path}`, base), {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values),
  }));
  const answer = last.then(send);
  last = answer.catch(() => undefined);
  return answer;
}

export const download = (path, args = {}) => address(`download/${path}`, args).href;
