// What is fetched only while somebody looks at it: stories of tuples, and logs.

import { Table, h, setText } from "./dom.js";
import { bytes, clock, count, many } from "./format.js";

export class Stories {
  constructor(place, topology) {
    this.topology = topology;
    this.said = h("p", { class: "muted" }, "What is known of trees that failed or were traced, failed ones first.");
    this.text = h("div", { "aria-live": "polite" });
    const again = h("button", { type: "button", onclick: () => this.update() }, "look again");
    const scroll = h("div", { class: "scroll" });
    place.append(h("div", { class: "row" }, again), this.said, this.text, scroll);
    this.table = new Table(scroll, [
      { title: "story", cell: (one, cell) => (cell.firstChild ? undefined : h("button", { type: "button", class: "link mono", onclick: () => this.open(one.root) }, one.root)) },
      { title: "ended", cell: (one) => new Date(one.ended).toLocaleString() },
      { title: "outcome", cell: (one) => one.outcome || "not known", look: (one) => (one.failed ? "bad-text" : "") },
      { title: "spout", cell: (one) => one.spout || "" },
      { title: "message", cell: (one) => one.message || "", wide: true },
      { title: "why", cell: (one) => one.why, wide: true },
    ], (one) => one.root);
  }

  async update() {
    const { stories, untold } = await this.topology.get("stories");
    this.table.show(stories);
    setText(this.said, `${stories.length === 1 ? "1 story" : `${count(stories.length)} stories`} of trees that failed or were traced, failed ones first.${untold ? ` ${count(untold)} more failures have no story.` : ""}`);
  }

  async open(root) {
    const { stories } = await this.topology.get("stories", { root });
    this.text.replaceChildren(...(stories.length ? stories.map((one) => h("pre", {}, one.lines.join("\n"))) : [h("p", {}, "The story is gone: its file was rotated away.")]));
    this.text.scrollIntoView({ block: "nearest" });
  }
}

const MOST_LETTERS = 400000;

export class Logs {
  constructor(place, topology) {
    Object.assign(this, { topology, last: null });
    this.files = h("select", { "aria-label": "log file", onchange: () => this.open() });
    this.follow = h("input", { type: "checkbox", checked: true });
    this.wanted = h("input", { type: "search", placeholder: "text to search", "aria-label": "text to search in logs" });
    this.everywhere = h("input", { type: "checkbox", checked: true });
    this.said = h("p", { class: "muted" });
    this.found = h("div");
    this.text = h("pre", { class: "log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "the log" });
    place.append(
      h("div", { class: "row" }, h("label", {}, "file ", this.files), h("label", {}, this.follow, " follow")),
      h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); this.search().catch((error) => setText(this.said, error.message)); } },
        this.wanted, h("label", {}, this.everywhere, " in all files"), h("button", { type: "submit" }, "Search")),
      this.said, this.found, this.text);
  }

  async list() {
    const { folder, files } = await this.topology.get("logs");
    const names = files.map((one) => one.name);
    const key = JSON.stringify(names);
    if (key !== this.key) {
      this.key = key;
      const chosen = this.files.value;
      this.files.replaceChildren(...files.map((one) => h("option", { value: one.name }, `${one.name} (${bytes(one.bytes)})`)));
      if (names.includes(chosen)) this.files.value = chosen;
    }
    setText(this.said, files.length ? `${folder}, on the driver's host` : folder ? `There are no log files in ${folder} on the driver's host.` : "The tasks of this topology log to the program that runs it, and not to files.");
    return names.length;
  }

  async open() {
    this.last = null;
    this.text.replaceChildren();
    await this.more();
  }

  // Shows what has been written since.
  async update() {
    if (!(await this.list())) return;
    if (this.last === null || this.follow.checked) await this.more();
  }

  async more() {
    const name = this.files.value;
    if (!name) return;
    const query = this.last && this.last.name === name ? { name, begin: this.last.end, file: this.last.file } : { name };
    const piece = await this.topology.get("log", query);
    if (this.files.value !== name) return;
    if (this.last && piece.begin < this.last.end) this.text.append("\n— the file begins anew —\n");
    if (!piece.text) { this.last = piece; return; }
    const atEnd = this.text.scrollTop + this.text.clientHeight >= this.text.scrollHeight - 30 || this.last === null;
    this.last = piece;
    this.text.append(piece.text);
    if (this.text.textContent.length > MOST_LETTERS) this.text.textContent = this.text.textContent.slice(-MOST_LETTERS / 2);
    if (atEnd && this.follow.checked) this.text.scrollTop = this.text.scrollHeight;
  }

  async search() {
    const text = this.wanted.value;
    if (!text) { this.found.replaceChildren(); return; }
    const { lines, more } = await this.topology.get("search", { text, ...(this.everywhere.checked ? {} : { name: this.files.value }) });
    this.found.replaceChildren(
      h("p", {}, lines.length ? `${many(lines.length, "line")}${more ? " and more" : ""} with “${text}”, ${clock(Date.now() / 1000)}` : `No line has “${text}”.`),
      lines.length ? h("pre", { class: "log" }, lines.map((one) => `${one.name}: ${one.line}`).join("\n")) : "");
  }
}
