// The buttons: what the topology may be asked to do. Each asks back first, in a dialog.

import { h } from "./dom.js";

const LABELS = { activate: "Activate", deactivate: "Deactivate", rebalance: "Rebalance…", kill: "Kill…" };

export class Actions {
  constructor(place, dialog, topology, done) {
    Object.assign(this, { place, dialog, topology, done, allowed: "" });
  }

  show(data) {
    this.data = data;
    const allowed = JSON.stringify(data.actions);
    if (allowed === this.allowed) return;
    this.allowed = allowed;
    const focused = this.place.contains(document.activeElement);
    this.place.replaceChildren(...data.actions.map((action) =>
      h("button", { type: "button", "data-action": action, class: action === "kill" ? "danger" : null, onclick: () => this.open(action) }, LABELS[action] || action)));
    if (focused) this.place.firstChild?.focus();
  }

  disable(off) { for (const button of this.place.querySelectorAll("button")) button.disabled = off; }

  open(action) {
    const { name, message_timeout: timeout, tasks } = this.data;
    if (action === "activate") return this.ask(`Activate ${name}?`, ["Its spouts emit again."], [], "Activate", () => this.topology.act("activate"));
    if (action === "deactivate") {
      return this.ask(`Deactivate ${name}?`, ["Its spouts emit nothing more. What is under way goes on."], [], "Deactivate", () => this.topology.act("deactivate"));
    }
    if (action === "kill") {
      return this.ask(`Kill ${name}?`, ["Its spouts stop now. What is under way may take the wait, and then the topology ends. If it was started with a checkpoint, it goes on where it was when it is started again."],
        [["wait", "wait, in seconds", timeout, 0]], "Kill it", (given) => this.topology.act(`kill/${given.wait}`), true);
    }
    const sizes = this.data.components.map((one) => [`executors of ${one.id}`, one.executors]);
    return this.ask(`Rebalance ${name}?`, [`Its spouts pause, what is under way may take the wait, and then its ${tasks} tasks are laid out anew. Fields that stay as they are ask for nothing.`],
      [["wait", "wait, in seconds", timeout, 0], ["workers", "workers", this.data.workers.length, 1], ...sizes.map(([label, size], at) => [`c${at}`, label, size, 1])], "Rebalance",
      (given) => {
        const executors = {};
        this.data.components.forEach((one, at) => { if (given[`c${at}`] !== sizes[at][1]) executors[one.id] = given[`c${at}`]; });
        const rebalanceOptions = { ...(given.workers !== this.data.workers.length ? { numWorkers: given.workers } : {}), ...(Object.keys(executors).length ? { executors } : {}) };
        return this.topology.act(`rebalance/${given.wait}`, { rebalanceOptions });
      });
  }

  ask(title, texts, fields, verb, act, danger = false) {
    const said = h("p", { class: "bad-text", role: "alert" });
    const inputs = fields.map(([, , value, least]) => h("input", { type: "number", min: least, step: "any", value, required: true }));
    const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, verb);
    const form = h("form", { onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      try {
        await act(Object.fromEntries(fields.map(([key], at) => [key, Number(inputs[at].value)])));
        this.dialog.close();
        this.done();
      } catch (error) {
        said.textContent = error.message;
        go.disabled = false;
      }
    } },
    h("h2", { id: "dialog-title" }, title), texts.map((text) => h("p", {}, text)),
    fields.map(([, label], at) => h("label", {}, label, inputs[at])), said,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => this.dialog.close() }, "Cancel"), go));
    this.dialog.replaceChildren(form);
    this.dialog.showModal();
    (inputs[0] || go).focus();
  }
}
