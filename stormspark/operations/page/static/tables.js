// The tables: components, one component, queues, batches, workers, calls under way.

import { Table, h, setClass, setText, shown } from "./dom.js";
import { bytes, count, dated, lasted, many, ms, rate, share } from "./format.js";

export class Components {
  constructor(place, choose) {
    const button = (one, cell) => {
      if (cell.firstChild) return undefined;
      return h("button", { type: "button", class: "link", onclick: () => choose(one.id) }, one.id);
    };
    this.table = new Table(place, [
      { title: "component", cell: button },
      { title: "kind", cell: (one) => one.kind },
      { title: "tasks", number: true, cell: (one) => (one.executors === one.tasks ? count(one.tasks) : `${count(one.tasks)} in ${one.executors}`) },
      { title: "per second", number: true, cell: (one) => rate(one.kind === "spout" ? one.rates.emitted : one.rates.executed) },
      { title: "latency", number: true, cell: (one) => ms(one.latency_ms ?? one.all_time_ms.mean) },
      { title: "p99", number: true, cell: (one) => ms(one.all_time_ms.p99) },
      { title: "busy", number: true, cell: (one) => (one.kind === "spout" ? "" : share(one.capacity)), look: (one) => (one.capacity > 0.9 ? "slow-text" : "") },
      { title: "waiting", number: true, cell: (one) => (one.kind === "spout" ? `${count(one.pending)} open` : count(one.queued)), look: (one) => (one.above ? "bad-text" : "") },
      { title: "emitted", number: true, cell: (one) => count(one.totals.emitted) },
      { title: "executed", number: true, cell: (one) => (one.kind === "spout" ? "" : count(one.totals.executed)) },
      { title: "acked", number: true, cell: (one) => count(one.totals.acked) },
      { title: "failed", number: true, cell: (one) => count(one.totals.failed), look: (one) => (one.rates.failed > 0 ? "bad-text" : "") },
      { title: "errors", number: true, cell: (one) => count(one.totals.errors), look: (one) => (one.totals.errors ? "bad-text" : "") },
    ], (one) => one.id, { look: (one) => (one.id === this.chosen ? "chosen" : "") });
  }

  show(data, chosen) {
    this.chosen = chosen;
    this.table.show(data.components);
  }
}

export function showComponent(place, data, chosen) {
  const one = data.components.find((component) => component.id === chosen);
  shown(place, one ? facts(data, one) : null, (pairs) => pairs && [
    h("h3", {}, `${one.kind} ${one.id}`),
    h("table", {}, h("tbody", {}, pairs.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "wide" }, value))))),
  ]);
}

function facts(data, one) {
  const t = one.totals;
  const whys = [["a bolt failed them", t.failed_by_bolt], ["timed out", t.timed_out], ["a worker was lost", t.worker_lost]].filter(([, n]) => n).map(([why, n]) => `${count(n)} ${why}`);
  const edges = (end, other) => data.edges.filter((edge) => edge[end] === one.id).map((edge) => `${edge[other]} (${edge.stream}, ${edge.grouping}${edge.per_s === null ? "" : `, ${rate(edge.per_s)}/s`})`).join("; ");
  return [
    ["declared at", one.declared_at],
    ["source", one.source], ["state", one.state],
    ["gets tuples of", edges("target", "source")],
    ["sends tuples to", edges("source", "target")],
    ["all time", `mean ${ms(one.all_time_ms.mean)}, median ${ms(one.all_time_ms.p50)}, 99th percentile ${ms(one.all_time_ms.p99)}`],
    ["failed", t.failed ? `${count(t.failed)}${whys.length ? `: ${whys.join(", ")}` : ""}` : ""],
    ["last failure", one.last_failure],
    ["errors", t.errors ? `${count(t.errors)}, ${count(t.restarts)} restarts` : ""],
    ["tasks that wait for their restart", one.down ? count(one.down) : ""],
    ["calls under way", one.calls_at_once ? `${rate(one.calls_under_way)} of ${count(one.calls_at_once)}` : ""],
    ["given up", t.dead_letters ? `${count(t.dead_letters)} rows, in ${data.dead_letters_in || "the logs of tasks"}` : ""],
    ["dropped or failed at a full queue", t.shed ? count(t.shed) : ""],
    ["late tuples", t.late ? count(t.late) : ""],
    ["limit", one.limit === undefined ? "" : one.limit === null ? "no limit now" : `${count(one.limit)} tuples per round`],
    ["held back by", one.throttled_by],
    ["max spout pending", one.max_pending ? `${count(one.max_pending)} per task` : ""],
  ].filter(([, value]) => value);
}

export class Queues {
  constructor(place) {
    const meter = (level, value, low, high) => {
      level.firstChild.value = high ? Math.min(1, value / high) : 0;
      return level;
    };
    const cell = (value, low, high, unit) => (one, place) => {
      if (!place.meter) {
        place.text = h("span");
        place.meter = h("span", {}, h("meter", { min: 0, max: 1, low: 0.5, high: 0.9, optimum: 0 }), " ", place.text);
        place.append(place.meter);
      }
      meter(place.meter, one[value], one[low], one[high]);
      place.meter.firstChild.setAttribute("aria-label", `${unit(one[value])} of ${unit(one[high])}`);
      setText(place.text, `${unit(one[value])} (marks ${unit(one[low])} and ${unit(one[high])})`);
      return undefined;
    };
    this.table = new Table(place, [
      { title: "bolt", cell: (one) => one.id },
      { title: "waiting tuples", cell: cell("queued", "low_mark", "high_mark", count) },
      { title: "waiting bytes", cell: cell("queued_bytes", "low_mark_bytes", "high_mark_bytes", bytes) },
      { title: "work", number: true, cell: (one) => (one.backlog_seconds ? lasted(one.backlog_seconds) : "") },
    ], (one) => one.id);
    this.spouts = new Table(place, [
      { title: "spout", cell: (one) => one.id },
      { title: "limit per round", number: true, cell: (one) => (one.limit === null ? "none" : count(one.limit)) },
      { title: "held back by", cell: (one) => one.throttled_by || "" },
      { title: "for how long, by whom", wide: true, cell: (one) => Object.entries(one.throttled_ms || {}).map(([bolt, time]) => `${bolt} ${lasted(time / 1000)}`).join(", ") },
      { title: "open trees", number: true, cell: (one) => count(one.pending) },
      { title: "max spout pending", number: true, cell: (one) => (one.max_pending ? `${count(one.max_pending)} per task` : "none") },
    ], (one) => one.id);
    this.more = h("div");
    place.append(this.more);
  }

  show(data) {
    this.table.show(data.components.filter((one) => one.high_mark !== undefined));
    this.spouts.show(data.components.filter((one) => one.limit !== undefined));
    shown(this.more, [data.held_back, data.limit_changes], ([lines, changes]) => [
      lines.length ? h("h3", {}, "What held spouts back") : null, ...lines.map((line) => h("p", {}, line)),
      changes.length ? h("h3", {}, "The last changes of limits") : null,
      changes.length ? h("pre", {}, [...changes].reverse().map((one) => `after ${lasted(one.seconds)}: ${one.spout} ${one.limit === null ? "has no limit" : `at most ${count(one.limit)} per round`}${one.because_of ? `, because of ${one.because_of}` : ""}`).join("\n")) : null,
    ]);
  }
}

const PARTS = { workers: "workers", exchanges: "Spark's exchanges and scheduling", between: "between batches", commit: "commit", filled: "filled by work meanwhile", pause: "pause" };

export function showBatches(place, data) {
  const p = data.progress;
  shown(place, [p.batches, p.batch_ms, data.phases_ms, data.taken_back, data.exactly_once], () => {
    const parts = Object.entries(data.phases_ms).filter(([, value]) => value > 0);
    return [
      h("p", {}, `${count(p.batches)} batches have ended, in ${count(p.rounds)} rounds; the last rounds took ${ms(p.batch_ms)} each.`),
      parts.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "where the time of a round goes"), h("th", { scope: "col", class: "number" }, "mean of the last seconds"))),
        h("tbody", {}, parts.sort((a, b) => b[1] - a[1]).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, PARTS[name] || name), h("td", { class: "number" }, ms(value)))))) : null,
      h("p", {}, data.exactly_once
        ? `A batch is one transaction: ${count(p.batches)} were committed, and ${count(data.taken_back.count)} attempts were taken back${data.taken_back.last ? `, the last one because: ${data.taken_back.last}` : ""}.`
        : "Tuples are processed at least once. Batches are no transactions here."),
    ];
  });
}

export class Workers {
  constructor(place) {
    this.table = new Table(place, [
      { title: "worker", number: false, cell: (one) => one.worker },
      { title: "host", cell: (one) => one.host || "starts" },
      { title: "process", number: true, cell: (one) => one.pid || "" },
      { title: "since", number: true, cell: (one) => (one.pid ? lasted(one.seconds) : "") },
      { title: "tasks", number: true, cell: (one) => one.tasks },
    ], (one) => one.worker);
    this.calls = h("div");
    place.append(this.calls);
  }

  show(data) {
    this.table.show(data.workers);
    shown(this.calls, [data.workers_reason, data.calls], ([why, calls]) => [
      why ? h("p", { class: "muted" }, why) : null,
      calls.length ? h("h3", {}, "Calls of components that run now") : null,
      calls.length ? h("table", {}, h("tbody", {}, calls.map((one) => h("tr", {}, h("th", { scope: "row" }, one.task), h("td", { class: "wide" }, one.code),
        h("td", { class: "number" }, lasted(one.seconds)), h("td", { class: "number" }, one.others ? `and ${count(one.others)} others` : ""))))) : null,
    ]);
  }
}

const MOST_ROWS = 300;

export class Tasks {
  constructor(place, topology) {
    this.topology = topology;
    this.filter = h("input", { type: "search", "aria-label": "tasks of which component, worker or number", placeholder: "component or task" });
    this.filter.addEventListener("input", () => this.draw());
    this.said = h("span", { class: "muted" });
    const scroll = h("div", { class: "scroll" });
    place.append(h("div", { class: "row" }, this.filter, this.said), scroll);
    const of = (name) => (row) => row[this.columns.indexOf(name)];
    this.table = new Table(scroll, [
      { title: "task", cell: (row) => `${of("component")(row)}[${of("index")(row)}]` },
      ...["task", "executor", "worker"].map((name) => ({ title: name === "task" ? "id" : name, number: true, cell: of(name) })),
      ...["emitted", "executed", "acked", "failed", "pending", "queued", "errors", "restarts"].map((name) => ({ title: name, number: true, cell: (row) => count(of(name)(row)) })),
      { title: "latency", number: true, cell: (row) => ms(of("mean_ms")(row)) },
    ], of("task"));
  }

  async update() {
    const found = await this.topology.get("tasks");
    this.columns = found.columns;
    this.rows = found.rows;
    this.draw();
  }

  draw() {
    if (!this.rows) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const fits = this.rows.filter(([id, component, index]) => !wanted || `${component}[${index}] ${id}`.toLowerCase().includes(wanted));
    this.table.show(fits.slice(0, MOST_ROWS));
    setText(this.said, fits.length > MOST_ROWS ? `the first ${MOST_ROWS} of ${many(fits.length, "task")}` : many(fits.length, "task"));
  }
}

export class Errors {
  constructor(place, topology) {
    Object.assign(this, { place, topology, seen: null });
  }

  async update(data) {
    const total = data.components.reduce((sum, one) => sum + one.totals.errors, 0);
    if (this.seen === total) return;
    const { errors } = total ? await this.topology.get("errors") : { errors: [] };
    this.seen = total;
    const opened = new Set([...this.place.querySelectorAll("details[open]")].map((one) => one.dataset.key));
    this.place.replaceChildren(
      h("p", { class: "muted" }, total ? `${many(total, "error")} in all; the last ten of each component are here, the newest first.` : "There were none."),
      ...errors.map((one) => {
        const key = `${one.at} ${one.task} ${one.summary}`;
        return h("details", { "data-key": key, open: opened.has(key) },
          h("summary", {}, h("span", { class: "muted" }, one.at ? `${dated(one.at)} ` : ""), h("strong", {}, `${one.component} `), h("span", { class: "bad-text" }, one.summary),
            one.line ? h("code", {}, ` ${one.line}`) : null),
          h("p", { class: "muted" }, `task ${one.task}, worker ${one.worker}${one.host ? ` on ${one.host}` : ""}`), h("pre", {}, one.text));
      }));
  }
}

export function showFigures(place, data) {
  const p = data.progress;
  const spouts = data.components.filter((one) => one.kind === "spout");
  const slowest = spouts.map((one) => one.latency_ms ?? one.all_time_ms.mean).filter((value) => value !== null);
  const failing = spouts.reduce((sum, one) => sum + (one.rates.failed || 0), 0);
  const figures = [
    ["tuples per second", rate(p.executed_per_s), "executed by bolts"],
    ["acked per second", rate(p.acked_per_s), `${count(p.acked)} in all`],
    ["failed trees", count(p.failed), failing ? `${rate(failing)} per second` : "none now", failing > 0 ? "bad-text" : ""],
    ["emit to ack", slowest.length ? ms(Math.max(...slowest)) : "–", "mean, the slowest spout"],
    ["open trees", count(p.pending), `${count(p.queued)} tuples wait`],
    ["a batch's round", ms(p.batch_ms), `${count(p.batches)} batches`],
  ];
  if (!place.made) {
    place.made = figures.map(([name]) => {
      const [value, more] = [h("dd"), h("small")];
      place.append(h("dl", { class: "figure" }, h("dt", {}, name), value, more));
      return [value, more];
    });
  }
  figures.forEach(([, value, more, look], at) => {
    setText(place.made[at][0], value);
    setClass(place.made[at][0], look || "");
    setText(place.made[at][1], more);
  });
}
