// The page with all topologies of this user on this host.

import { Refused, ask, signIn } from "./api.js";
import { $, h, setText, shown } from "./dom.js";
import { clock, dated, lasted, rate } from "./format.js";

let wake = () => {};
let lostAt = null;
let turn = 0;

async function look() {
  const { topologies } = await ask("api/v1/stormspark/topologies");
  lostAt = null;
  say("");
  const bad = topologies.filter((one) => one.level === "bad").length;
  document.title = `${bad ? `⚠ ${bad} of ` : ""}${topologies.length} topologies — stormspark`;
  setText($("about"), topologies.length ? `${topologies.length} of this user on this host${bad ? `, ${bad} in trouble` : ""}` : "");
  shown($("list"), topologies.length ? topologies : "none", () => (topologies.length ? topologies.map(line) : h("li", {}, "This user runs no topology on this host. ", h("code", {}, "stormspark run FILE"), " starts one.")));
}

function line(one) {
  const figures = one.uptime === undefined ? "" : `${rate(one.executed_per_s)} tuples per second, ${rate(one.acked_per_s)} acked per second; runs for ${lasted(one.uptime)}`;
  const link = one.status === "DEAD" ? h("strong", {}, one.name) : h("a", { href: one.at }, one.name);
  return h("li", { class: one.level }, h("div", { class: "row" }, link, h("span", { class: `pill ${one.status === "ACTIVE" ? "good" : one.status === "DEAD" ? "bad" : ""}` }, one.status)),
    h("div", {}, `${one.title}${one.reasons && one.reasons.length ? `: ${one.reasons.join("; ")}` : ""}`),
    h("div", { class: "muted" }, [figures, one.engine && `${one.engine} engine`, one.began && `since ${dated(one.began)}`, one.id].filter(Boolean).join(" · ")));
}

function say(text) {
  $("connection").hidden = !text;
  setText($("connection"), text);
}

async function run() {
  for (;;) {
    if (!document.hidden) {
      try {
        await look();
        turn += 1;
        document.documentElement.dataset.shown = String(turn);
      } catch (error) {
        lostAt ||= Date.now() / 1000;
        if (error instanceof Refused && error.status === 401) say("This browser has no token. Open the link that `stormspark ui` prints; each link is good for one time, and the next one is printed below it.");
        else say(`\`stormspark ui\` has not answered since ${clock(lostAt)}. The page goes on when it answers again.`);
      }
    }
    await new Promise((resolve) => { wake = resolve; setTimeout(resolve, 2000); });
  }
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
addEventListener("hashchange", () => signIn("session").then(() => wake()));
const refused = await signIn("session").catch(() => null);
if (refused) say(refused);
run();
