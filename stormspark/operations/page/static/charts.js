// Charts of figures over time, drawn by uPlot. What a chart shows now is also in words, for those who do not see it.

import { h, setText } from "./dom.js";
import { clock, ms, rate, short } from "./format.js";

const number = (value) => (value === null || value === undefined ? "–" : short(value));
const OF_TOPOLOGY = [
  { title: "tuples per second", unit: rate, lines: { executed: "executed by bolts", acked: "trees acked" } },
  { title: "failed trees and errors per second", unit: rate, lines: { failed: "failed", errors: "errors" }, colours: [5, 3] },
  { title: "time from emit to ack, mean", unit: ms, lines: { latency_ms: "complete latency" } },
  { title: "open trees and waiting tuples", unit: number, lines: { pending: "open trees", queued: "waiting tuples" } },
  { title: "time of a batch", unit: ms, lines: { batch_ms: "rounds", workers: "workers", exchanges: "exchanges", between: "between batches", commit: "commit", pause: "pause" } },
];
const OF_SPOUT = [
  { title: "emitted and acked per second", unit: rate, lines: { emitted: "emitted", acked: "acked" } },
  { title: "failed per second", unit: rate, lines: { failed: "failed" }, colours: [5] },
  { title: "time from emit to ack, mean", unit: ms, lines: { latency_ms: "complete latency" } },
  { title: "open trees", unit: number, lines: { pending: "open trees" } },
  { title: "limit of a round (gaps: no limit)", unit: number, lines: { limit: "tuples" } },
];
const OF_BOLT = [
  { title: "executed and emitted per second", unit: rate, lines: { executed: "executed", emitted: "emitted" } },
  { title: "failed and errors per second", unit: rate, lines: { failed: "failed", errors: "errors" }, colours: [5, 3] },
  { title: "time in execute, mean", unit: ms, lines: { latency_ms: "execute latency" } },
  { title: "waiting tuples, against the marks", unit: number, lines: { queued: "waiting" }, marks: ["high_mark", "low_mark"] },
  { title: "waiting bytes, against the marks", unit: number, lines: { queued_bytes: "bytes" }, marks: ["high_mark_bytes", "low_mark_bytes"] },
];

export class Charts {
  constructor(place, scope, range, topology) {
    Object.assign(this, { place, scope, range, topology, charts: [], data: null, made: "" });
    scope.addEventListener("change", () => this.again());
    range.addEventListener("change", () => this.again());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.made = ""; this.draw(); });
    new ResizeObserver(() => this.resize()).observe(place);
  }

  choices(components) {
    const wanted = ["", ...components.map((one) => one.id)];
    if (JSON.stringify(wanted) === this.wanted) return;
    this.wanted = JSON.stringify(wanted);
    const chosen = this.scope.value;
    this.scope.replaceChildren(h("option", { value: "" }, "the whole topology"), ...wanted.slice(1).map((id) => h("option", { value: id }, id)));
    this.scope.value = wanted.includes(chosen) ? chosen : "";
  }

  choose(component) {
    this.scope.value = component;
    this.again();
  }

  again() {
    this.data = null;
    if (this.components) return this.update(this.components);
  }

  forget() { this.data = null; this.made = ""; }

  async update(components) {
    this.components = components;
    this.choices(components);
    const [component, seconds] = [this.scope.value, Number(this.range.value)];
    const old = this.data && this.data.component === component && this.data.seconds === seconds ? this.data : null;
    // The rates of the last moments may be known only now, so some are asked for again.
    const since = old && old.at.length ? Math.max(0, old.at[old.at.length - 1] - (seconds > 600 ? 120 : 20)) : 0;
    const query = { seconds, since, ...(component ? { component } : {}) };
    const found = await this.topology.get("history", query);
    if (this.scope.value !== component || Number(this.range.value) !== seconds) return;
    this.data = joined(old, found, since, seconds);
    Object.assign(this.data, { component, seconds });
    this.draw();
  }

  draw() {
    if (!this.data || !window.uPlot) return;
    const one = this.components.find((component) => component.id === this.data.component);
    const specs = !one ? OF_TOPOLOGY : one.kind === "spout" ? OF_SPOUT : OF_BOLT;
    const made = JSON.stringify([this.data.component, specs.length]);
    if (made !== this.made) {
      for (const chart of this.charts) chart.plot.destroy();
      this.place.replaceChildren();
      this.charts = specs.map((spec) => new Chart(this.place, spec));
      this.made = made;
    }
    for (const chart of this.charts) chart.show(this.data, one);
  }

  resize() { for (const chart of this.charts) chart.resize(); }
}

function joined(old, found, since, seconds) {
  if (!old) return found;
  const keep = old.at.findIndex((at) => at > since);
  const upTo = keep < 0 ? old.at.length : keep;
  const start = (found.at.length ? found.at[found.at.length - 1] : old.at[old.at.length - 1]) - seconds;
  const from = Math.max(0, old.at.findIndex((at) => at >= start));
  const all = { at: [...old.at.slice(from, upTo), ...found.at] };
  for (const name of new Set([...Object.keys(old), ...Object.keys(found)])) {
    if (name === "at" || name === "component" || name === "seconds") continue;
    const [before, after] = [old[name] || [], found[name] || []];
    all[name] = [...Array.from({ length: upTo - from }, (_, i) => before[from + i] ?? null), ...Array.from({ length: found.at.length }, (_, i) => after[i] ?? null)];
  }
  return all;
}

class Chart {
  constructor(place, spec) {
    this.spec = spec;
    this.legend = h("ul", { class: "legend" });
    this.area = h("div", { class: "plot", role: "img" });
    place.append(h("figure", { class: "chart" }, h("h3", {}, spec.title), this.legend, this.area));
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const names = [...Object.keys(spec.lines), ...(spec.marks || [])];
    this.names = names;
    this.colours = names.map((_, at) => (at >= Object.keys(spec.lines).length ? [5, 3][at - Object.keys(spec.lines).length] : (spec.colours || [1, 2, 3, 4, 6, 7])[at]));
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    this.plot = new window.uPlot({
      width: Math.max(200, this.area.clientWidth), height: 150, legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map((at) => new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })) },
        { ...axis, size: 58, values: (_, ticks) => ticks.map((tick) => spec.unit(tick)) }],
      series: [{}, ...names.map((name, at) => ({
        stroke: colour(`--c${this.colours[at]}`), width: (spec.marks || []).includes(name) ? 1 : 1.6,
        dash: (spec.marks || []).includes(name) ? [6, 4] : undefined, points: { show: false }, spanGaps: name !== "limit",
      }))],
      hooks: { setCursor: [() => this.tell()] },
    }, [[], ...names.map(() => [])], this.area);
    this.texts = names.map((name, at) => {
      const value = h("span");
      this.legend.append(h("li", { class: `s${this.colours[at]}` }, `${spec.lines[name] || name.replace(/_bytes$/, "").replace("_", " ")} `, value));
      return value;
    });
  }

  show(data, component) {
    const marks = this.spec.marks || [];
    const columns = this.names.map((name) => (marks.includes(name)
      ? data.at.map(() => component?.[name] ?? null) : data[name] || data.at.map(() => null)));
    // A mark that is far away would flatten the line. It is left out of the picture until a tenth of it waits.
    marks.forEach((name) => {
      const at = this.names.indexOf(name);
      const most = Math.max(0, ...columns[0].filter((value) => value !== null));
      this.plot.series[at + 1].show = most * 10 >= (component?.[name] ?? Infinity);
    });
    this.columns = [data.at, ...columns];
    this.plot.setData(this.columns);
    this.tell();
  }

  tell() {
    if (!this.columns) return;
    this.names.forEach((_, row) => { this.texts[row].parentNode.hidden = row > 0 && !this.columns[row + 1].some((value) => value !== null); });
    const at = this.plot.cursor?.idx;
    const words = [];
    this.names.forEach((name, row) => {
      const column = this.columns[row + 1];
      let value = at !== null && at !== undefined ? column[at] : null;
      if (at === null || at === undefined) for (let i = column.length - 1; i >= 0 && value === null; i--) value = column[i];
      setText(this.texts[row], this.spec.unit(value));
      words.push(`${this.spec.lines[name] || name.replace("_", " ")} ${this.spec.unit(value)}`);
    });
    const when = at !== null && at !== undefined && this.columns[0][at] ? `at ${clock(this.columns[0][at])}` : "now";
    this.area.setAttribute("aria-label", `${this.spec.title}, ${when}: ${words.join(", ")}`);
  }

  resize() {
    const width = this.area.clientWidth;
    if (width && Math.abs(width - this.plot.width) > 2) this.plot.setSize({ width, height: 150 });
  }
}
