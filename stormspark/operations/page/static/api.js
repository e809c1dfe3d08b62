// Asks the server that has sent the page. A token that a link has brought is kept for this address and port alone, by the browser,
// and travels in a header. So no other site can use it, and it is in no address and no log.

// The address without what may stand before the host: a browser refuses to fetch an address with a password.
const here = new URL("./", location.origin + location.pathname);
const KEY = "stormspark-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function token() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

// Exchanges the token of a link, which is good for one time, for one that lasts as long as the server. Returns what went wrong.
export async function signIn(at) {
  const once = new URLSearchParams(location.hash.slice(1)).get("once");
  if (!once) return null;
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await fetch(new URL(at, here), { method: "POST", headers: { Authorization: `Bearer ${once}` } });
  if (!answer.ok) return "This link has been used before. Type `stormspark ui` again for a new one.";
  localStorage.setItem(KEY, (await answer.json()).token);
  return null;
}

export async function ask(path, options = {}) {
  const headers = { Accept: "application/json", ...(options.body ? { "Content-Type": "application/json" } : {}) };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const answer = await fetch(new URL(path, here), {
    ...options, headers, cache: "no-store", signal: AbortSignal.timeout(options.timeout || 10000),
  });
  let body = null;
  try { body = await answer.json(); } catch { /* an answer of something that stands between */ }
  if (answer.status === 401) { try { localStorage.removeItem(KEY); } catch { /* it keeps nothing */ } }
  if (!answer.ok) throw new Refused(answer.status, (body && body.errorMessage) || `the server answers ${answer.status}`);
  if (body === null) throw new Refused(502, "the server's answer is no JSON");
  return body;
}

// A call about the topology of this page.
export class Topology {
  constructor() { this.id = null; }

  async find() {
    const found = await ask("api/v1/stormspark/topology");
    const changed = this.id !== null && this.id !== found.id;
    Object.assign(this, found);
    return changed;
  }

  path(name, query) {
    const asked = query ? `?${new URLSearchParams(query)}` : "";
    return `api/v1/stormspark/topology/${encodeURIComponent(this.id)}${name && `/${name}`}${asked}`;
  }

  get(name, query, options) { return ask(this.path(name, query), options); }

  act(action, body) {
    return ask(`api/v1/topology/${encodeURIComponent(this.id)}/${action}`,
      { method: "POST", body: body && JSON.stringify(body), timeout: 30000 });
  }
}
