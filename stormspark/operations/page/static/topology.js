// The page of one topology: asks its driver each second while it is visible, and shows what comes.

import { Actions } from "./actions.js";
import { Refused, Topology, signIn } from "./api.js";
import { Charts } from "./charts.js";
import { Logs, Stories } from "./details.js";
import { $, h, setClass, setText, shown } from "./dom.js";
import { clock, lasted, many } from "./format.js";
import { Graph } from "./graph.js";
import { Components, Errors, Queues, Tasks, Workers, showBatches, showComponent, showFigures } from "./tables.js";
import { Commits, Lag, State } from "./transactions.js";

const EVERY_MS = 1000;
const FORMAT = 1;

const topology = new Topology();
const graph = new Graph($("graph"), $("graph-hint"), choose);
const charts = new Charts($("charts"), $("scope"), $("range"), topology);
const components = new Components($("components"), choose);
const errors = new Errors($("errors"), topology);
const actions = new Actions($("actions"), $("dialog"), topology, () => wake());
const inside = (id) => $(id).querySelector("div");
const queues = new Queues(inside("queues"));
const workers = new Workers(inside("workers"));
const tasks = new Tasks(inside("tasks"), topology);
const stories = new Stories(inside("stories"), topology);
const logs = new Logs(inside("logs"), topology);
const commits = new Commits($("commits"), topology);
const state = new State(inside("state"), topology);
const lag = new Lag($("lag"), topology);

let data = null;
let chosen = null;
let lostAt = null;
let restarted = null;
let turn = 0;
let timer = null;
let wakes = null;

function choose(component) {
  chosen = chosen === component && charts.scope.value === component ? null : component;
  charts.choose(chosen || "");
  if (data) { showAll(); lag.update(data).catch(() => {}); }
  if (chosen) $("component").scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function showAll() {
  document.title = `${data.verdict.level === "bad" ? "⚠ " : ""}${data.name} — stormspark`;
  setText($("name"), data.name);
  setText($("status"), data.status);
  setClass($("status"), `pill ${data.status === "ACTIVE" ? "good" : ""}`);
  setText($("about"), `${data.engine} engine${data.exactly_once ? ", exactly once" : ""} · ${data.finished ? "ran" : "runs"} for ${lasted(data.uptime)} · ${[[data.workers.length, "worker"], [data.executors, "executor"], [data.tasks, "task"]].filter(([n]) => n).map(([n, noun]) => many(n, noun)).join(", ")} · ${data.id}${data.host ? ` · driver ${data.pid} of ${data.owner} on ${data.host}` : ""}`);
  setText($("version"), data.version ? `stormspark ${data.version}` : "");
  showVerdict();
  showFigures($("figures"), data);
  graph.show(data);
  components.show(data, chosen);
  showComponent($("component"), data, chosen);
  lag.choose(chosen);
  $("state").hidden = Boolean(data.finished) || !data.components.some((one) => one.state);
  actions.show(data);
  if ($("queues").open) queues.show(data);
  if ($("batches").open) showBatches(inside("batches"), data);
  if ($("workers").open) workers.show(data);
}

function showVerdict() {
  const { level, title, reasons } = data.verdict;
  setClass($("verdict"), `verdict ${level}`);
  shown($("verdict"), [data.name, title, reasons], () => [
    h("strong", {}, `${data.name} ${title}`),
    reasons.length ? h("ul", {}, reasons.map((one) => h("li", { class: `${one.level}-text` },
      one.component && data.components.some((other) => other.id === one.component)
        ? h("button", { type: "button", class: "link", onclick: () => choose(one.component) }, one.text) : one.text))) : null,
  ]);
}

function say(text) {
  $("connection").hidden = !text;
  setText($("connection"), text);
}

async function look() {
  if (topology.id === null || lostAt) {
    if (await topology.find()) { restarted = Date.now() / 1000; charts.forget(); errors.seen = null; logs.last = null; state.forget(); }
  }
  const found = await topology.get("");
  data = { ...found, finished: topology.finished };
  if (data.format !== FORMAT) say("This page and its driver are of different versions: reload the page.");
  else say(restarted ? `The topology was started again: since ${clock(restarted)}, this is ${data.id}.` : data.note || "");
  lostAt = null;
  actions.disable(false);
  showAll();
  turn += 1;
  if (data.finished) for (const id of ["stories", "workers", "tasks", "logs"]) $(id).hidden = true;
  const jobs = [charts.update(data.components), errors.update(data)];
  if ($("logs").open) jobs.push(logs.update());
  if ($("batches").open) jobs.push(commits.update(data));
  if ($("state").open && turn % 2 === 1) jobs.push(state.update(data));
  if (turn % 2 === 1) jobs.push(lag.update(data));
  if ($("tasks").open && turn % 2 === 1) jobs.push(tasks.update());
  const failed = (await Promise.allSettled(jobs)).find((one) => one.status === "rejected");
  if (failed && !(failed.reason instanceof Refused)) throw failed.reason;
}

async function run() {
  for (;;) {
    if (!document.hidden) {
      const began = performance.now();
      try {
        await look();
        document.documentElement.dataset.shown = String(turn);
        document.documentElement.dataset.tookMs = String(Math.round(performance.now() - began));
      } catch (error) { lost(error); }
      if (data?.finished) {
        $("time").hidden = !charts.data?.at.length;
        return;
      }
    }
    await new Promise((resolve) => { wakes = resolve; timer = setTimeout(resolve, EVERY_MS); });
  }
}

function lost(error) {
  if (error instanceof Refused && error.status === 401) {
    say("The server wants a token that this browser has not got. Type `stormspark ui` again, and open the link that it prints.");
  } else if (error instanceof Refused && error.status === 404 && !lostAt) {
    lostAt = Date.now() / 1000; // another run of the topology, perhaps: ask which one
    wake();
    return;
  } else if (error instanceof TypeError || error instanceof Refused || error.name === "TimeoutError") {
    lostAt ||= Date.now() / 1000;
    const said = error instanceof Refused ? ` (${error.message})` : "";
    say(`The driver has not answered since ${clock(lostAt)}${said}. ${data ? "What is shown is from before. " : ""}The page goes on when it answers again.`);
  } else {
    console.error(error);
    say(`The page has an error: ${error.message}`);
  }
  actions.disable(true);
}

function wake() {
  clearTimeout(timer);
  wakes?.();
}

// Of what a click asks for, and nobody waits for.
addEventListener("unhandledrejection", (event) => { event.preventDefault(); lost(event.reason); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
for (const id of ["queues", "batches", "state", "workers", "tasks", "logs"]) $(id).addEventListener("toggle", () => { if (data) { showAll(); if (id === "batches") commits.update(data).catch(() => {}); if (id === "state") state.update(data).catch(() => {}); if (id === "tasks") tasks.update(); if (id === "logs") logs.update().catch(() => {}); } });
$("stories").addEventListener("toggle", () => { if ($("stories").open) stories.update().catch((error) => setText(stories.said, error.message)); });
$("save").addEventListener("click", async () => {
  const [history, found] = [await topology.get("history", { seconds: 21600 }), await topology.get("errors")];
  const link = h("a", { href: URL.createObjectURL(new Blob([JSON.stringify({ stormspark_page: FORMAT, snapshot: data, history, errors: found.errors })], { type: "application/json" })), download: `${data.id}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
$("all").hidden = !/\/t\/[^/]+\/$/.test(location.pathname);
signIn("../../session").catch(() => null).then(run);
