// What exactly-once topologies keep, and how far their sources are: commits, attempts that were taken back, state tables, Kafka's lag.

import { Table, h, setText, shown } from "./dom.js";
import { bytes, count, dated, many, ms } from "./format.js";

export class Commits {
  constructor(place, topology) {
    this.topology = topology;
    this.committed = h("div", { class: "scroll", hidden: true });
    this.takenBack = h("div", { class: "scroll", hidden: true });
    place.append(this.committed, this.takenBack);
    this.commits = new Table(this.committed, [
      { title: "batch", cell: (one) => (one.batches > 1 ? `${one.batch - one.batches + 1} to ${one.batch}` : one.batch) },
      { title: "committed", cell: (one) => dated(one.at) },
      { title: "after the one before", number: true, cell: (one) => ms((one.seconds / one.batches) * 1000) + (one.batches > 1 ? " each" : "") },
      { title: "emitted by spouts", number: true, cell: (one) => count(one.emitted) },
      { title: "executed by bolts", number: true, cell: (one) => count(one.executed) },
      { title: "rounds", number: true, cell: (one) => count(one.rounds) },
    ], (one) => one.batch - one.batches, { caption: "The last commits. Attempts that were taken back count in the commit that follows. Batches without tuples are one line." });
    this.attempts = new Table(this.takenBack, [
      { title: "batch", cell: (one) => (one.batch < 0 ? "before the first" : one.batch) },
      { title: "taken back", cell: (one) => dated(one.at) },
      { title: "why", wide: true, cell: (one) => one.reason },
    ], (one) => `${one.batch} ${one.at}`, { caption: "The last attempts that were taken back. Their batches ran again." });
  }

  async update(data) {
    if (!data.exactly_once || data.finished) return;
    const { committed, taken_back: takenBack } = await this.topology.get("commits");
    this.committed.hidden = !committed.length;
    this.takenBack.hidden = !takenBack.length;
    this.commits.show(committed);
    this.attempts.show(takenBack);
  }
}

export class State {
  constructor(place, topology) {
    this.topology = topology;
    this.said = h("p");
    this.button = h("button", { type: "button", onclick: () => this.read() }, "read the table");
    this.wrong = h("p", { class: "bad-text", role: "alert" });
    this.found = h("div", { "aria-live": "polite" });
    place.append(this.said, this.button, this.wrong, this.found);
    this.button.hidden = true;
  }

  async update(data) {
    const { location, by_spark: bySpark, batch } = await this.topology.get("state");
    this.button.hidden = !location || bySpark;
    setText(this.said, !location ? "The state is in the topology's processes alone: no table keeps it."
      : `The state is in the table ${location}. ${batch === null ? "This driver has not committed a batch yet." : `Batch ${batch} was committed last.`}${bySpark ? ` Only Spark reads this table: type stormspark state ${data.name} COMPONENT.` : ""}`);
  }

  forget() { this.found.replaceChildren(); setText(this.wrong, ""); }

  // The table is read for this, which may take some seconds.
  async read() {
    this.button.disabled = true;
    setText(this.wrong, "");
    try {
      const { batch, components } = await this.topology.get("keys", {}, { timeout: 30000 });
      this.found.replaceChildren(
        ...(components.length ? [] : [h("p", {}, `No component has state as of batch ${batch}.`)]),
        ...components.flatMap((one) => [
          h("h3", {}, one.component),
          h("p", {}, `${many(one.tasks, "task")}, ${one.complete ? "" : "more than "}${many(one.keys, "key")} with ${bytes(one.bytes)}, as of batch ${batch}${one.keys > one.first.length && one.first.length ? `; the first ${count(one.first.length)}` : ""}`),
          one.first.length ? h("div", { class: "scroll" }, h("table", {},
            h("thead", {}, h("tr", {}, ["task", "key", "value"].map((name) => h("th", { scope: "col" }, name)))),
            h("tbody", {}, one.first.map((entry) => h("tr", {}, h("td", {}, String(entry.task)), h("td", { class: "wide mono" }, entry.key), h("td", { class: "wide mono" }, entry.value)))))) : null,
        ].filter(Boolean)));
    } catch (error) { setText(this.wrong, error.message); }
    this.button.disabled = false;
  }
}

export class Lag {
  constructor(place, topology) {
    Object.assign(this, { place, topology, chosen: null });
  }

  // What belongs to another component goes at once.
  choose(component) {
    if (component === this.chosen) return;
    this.chosen = component;
    shown(this.place, null, () => []);
  }

  async update(data) {
    const { chosen } = this;
    if (data.finished || data.components.find((one) => one.id === chosen)?.kind !== "spout") return;
    const found = await this.topology.get("lag", { component: chosen });
    if (chosen !== this.chosen) return;
    shown(this.place, found, () => found.count && [
      h("h3", {}, `${many(found.lag, "message")} wait in ${many(found.count, "partition")} of Kafka`),
      found.count > found.partitions.length ? h("p", { class: "muted" }, `The ${count(found.partitions.length)} partitions with the most.`) : null,
      h("div", { class: "scroll" }, h("table", {},
        h("thead", {}, h("tr", {}, ["topic", "partition", "read up to", "ends at", "waiting"].map((name, at) => h("th", { scope: "col", class: at > 1 ? "number" : null }, name)))),
        h("tbody", {}, found.partitions.map((one) => h("tr", {}, h("td", {}, one.topic), h("td", {}, one.partition), [one.read, one.end, one.lag].map((value) => h("td", { class: "number" }, count(value)))))))),
    ]);
  }
}
