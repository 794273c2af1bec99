// Requests to the server. All addresses are relative to the address of the page, which contains the token.

const base = new URL("./", location.href.split("#")[0]);

async function answered(response) {
  const values = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(values.error || `the server answered ${response.status}`);
  return values;
}

function address(path, asked) {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

export async function get(path, asked = {}, signal = undefined) {
  return answered(await fetch(address(`api/${path}`, asked), { signal }));
}

// Changes are sent one after the other, so that they arrive in the order in which the user made them.
let last = Promise.resolve();

export function post(path, values) {
  const send = async () => answered(await fetch(new URL(`api/${path}`, base), {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values),
  }));
  const answer = last.then(send);
  last = answer.catch(() => undefined);
  return answer;
}

export const download = (path, asked = {}) => address(`download/${path}`, asked).href;
