// Draws the graph of a topology: where boxes and arrows are comes from the server, and figures change in place.

import { h, setClass, setText, shown, svg } from "./dom.js";
import { ms, rate, share, short } from "./format.js";

const LONGEST = 26;

export class Graph {
  constructor(place, hint, choose) {
    Object.assign(this, { place, hint, choose, boxes: new Map(), links: [] });
    this.drawn = null;
  }

  show(data) {
    if (!data.graph) {
      shown(this.place, "none", () => h("p", { class: "muted" }, "There is no picture: the topology has too many components, or its subscriptions are not known. The table below has them."));
      this.drawn = null;
      return;
    }
    const key = JSON.stringify(data.graph);
    if (key !== this.drawn) { this.draw(data); this.drawn = key; }
    const holding = new Set(data.verdict.reasons.filter((one) => one.level === "slow").map((one) => one.component));
    const troubled = new Set(data.verdict.reasons.filter((one) => one.level === "bad").map((one) => one.component));
    for (const one of data.components) {
      const box = this.boxes.get(one.id);
      if (!box) continue;
      const spout = one.kind === "spout";
      const heat = spout || one.capacity === null ? 0 : Math.min(4, Math.floor(Math.max(0, one.capacity) * 5));
      const mark = troubled.has(one.id) ? " bad" : holding.has(one.id) ? " slow" : "";
      setClass(box.group, `box ${spout ? "spout" : `heat${heat}`}${mark}`);
      const work = spout ? one.rates.emitted : one.rates.executed;
      setText(box.first, `${rate(work)}/s  ${ms(one.latency_ms ?? one.all_time_ms.mean)}`);
      const waits = one.queued ? `${short(one.queued)} wait` : `${one.tasks} task${one.tasks === 1 ? "" : "s"}`;
      const full = spout ? (one.throttled_by ? "held back" : `${short(one.pending)} open`) : `busy ${share(one.capacity)}`;
      setText(box.second, cut(`${full}, ${waits}`, box.letters));
      setText(box.tip, `${one.id} (${one.kind}): ${rate(work)} per second, ${full}, ${waits}${mark ? `; ${reasons(data, one.id)}` : ""}`);
    }
    data.edges.forEach((edge, number) => {
      for (const link of this.links.filter((one) => one.edge === number)) {
        setText(link.label, edge.per_s === null ? "" : `${rate(edge.per_s)}/s`);
        link.line.setAttribute("stroke-width", edge.per_s ? Math.min(7, 1 + Math.log10(1 + edge.per_s)).toFixed(1) : 1);
        setText(link.tip, `${edge.source} → ${edge.target}, stream ${edge.stream}, ${edge.grouping}, ${edge.crosses ? "may cross workers" : "stays in its worker"}${edge.per_s === null ? "" : `: ${rate(edge.per_s)} per second`}`);
      }
    });
    setText(this.hint, "Colour: how busy a bolt's executors are. A bolt with an amber frame holds the spouts back, or needs a look; one with a red frame is in trouble. Thicker arrows carry more.");
  }

  draw(data) {
    const { width, height, boxes, links } = data.graph;
    const m = 6;
    this.boxes.clear();
    this.links = links.map((link) => {
      const tip = svg("title");
      const line = svg("path", { class: "line", d: link.line });
      const label = svg("text", { class: "small", x: link.x, y: link.y, "text-anchor": "middle" });
      return { edge: link.edge, tip, line, label, group: svg("g", {}, tip, line, svg("path", { class: "head", d: link.head }), label) };
    });
    const drawn = boxes.map((box) => {
      const kind = data.components.find((one) => one.id === box.id)?.kind;
      const x = box.x + box.w / 2;
      const text = (y, look) => svg("text", { class: look, x, y: box.y + y, "text-anchor": "middle" });
      const [name, first, second, tip] = [text(20, "boxname"), text(37, "small"), text(52, "small"), svg("title")];
      name.textContent = cut(box.id, LONGEST);
      const choose = () => this.choose(box.id);
      const group = svg("g", { class: "box", tabindex: 0, role: "button", "aria-label": `${kind} ${box.id}, show it`,
        onclick: choose, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
        tip, svg("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: kind === "spout" ? box.h / 2 : 5 }), name, first, second);
      this.boxes.set(box.id, { group, first, second, tip, letters: Math.floor((box.w - 12) / 6.7) });
      return group;
    });
    this.place.replaceChildren(svg("svg", { width: width + 2 * m, height: height + 2 * m, viewBox: `${-m} ${-m} ${width + 2 * m} ${height + 2 * m}`,
      role: "group", "aria-label": "components and the subscriptions between them" }, this.links.map((one) => one.group), drawn));
  }
}

function reasons(data, id) {
  return data.verdict.reasons.filter((one) => one.component === id).map((one) => one.text).join("; ");
}

function cut(text, longest) {
  const letters = [...text];
  return letters.length <= longest ? text : `${letters.slice(0, longest - 1).join("")}…`;
}
