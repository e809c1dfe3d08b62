// What exactly-once topologies keep, and how far their sources are: commits, attempts that were taken back, state tables, Kafka's lag.

import { Table, h } from "./dom.js";
import { count, dated, ms } from "./format.js";

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
      { title: "batch", cell: (one) => one.batch },
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
