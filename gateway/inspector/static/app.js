// Chooses the page by the address, and keeps what all pages share: the stream, keys, the theme.

import { Stream, updates } from "./lib/api.js";
import { el, note, replace } from "./lib/dom.js";
import { recolor } from "./lib/heat.js";
import { Keys } from "./lib/keys.js";
import { decision } from "./pages/decision.js";
import { groups } from "./pages/groups.js";
import { map } from "./pages/map.js";
import { node } from "./pages/node.js";
import { nodes } from "./pages/nodes.js";
import { plugins } from "./pages/plugins.js";
import { pods } from "./pages/pods.js";
import { policy } from "./pages/policy.js";
import { replicas } from "./pages/replicas.js";
import { shadow } from "./pages/shadow.js";

const ROUTES = { pods, groups, nodes, map, plugins, replicas, policy, shadow, node, pod: decision };
const LISTED = { pods: "Pods", groups: "Groups", nodes: "Nodes", map: "Map", plugins: "Plugins", replicas: "Replicas", policy: "Policy", shadow: "Shadow" };
const ABOVE = { pod: "pods", node: "nodes" };
const LIVE = { live: "Live", lost: "Not connected", paused: "Paused" };
const THEMES = ["system", "light", "dark"];

const main = document.getElementById("main");
const stream = new Stream("../decisions/stream");
const keys = new Keys(nextTheme);
let shown = {};
let turn = 0;

function parts() {
  return location.hash.replace(/^#\/?/, "").split("?")[0].split("/").map(decodeURIComponent);
}

async function route() {
  const [name = "", ...parameters] = parts();
  const current = ROUTES[name || "pods"] ? name || "pods" : "";
  const mine = (turn += 1);
  shown.destroy?.();
  shown = {};
  recolor();
  keys.page = {};
  showNavigation(ABOVE[current] || current);
  document.title = `${LISTED[current] || parameters.join("/") || "No such page"} · Moorage inspector`;
  replace(main, el("p", { class: "empty" }, "Loading …"));
  const page = await (ROUTES[current] || unknown)({ stream }, ...(current ? parameters : [name])).catch((error) => failed(error, current, parameters));
  if (mine !== turn) return page.destroy?.(); // another page was asked for meanwhile
  shown = keys.page = page;
  replace(main, page.element);
  page.shown?.();
}

async function unknown(_, name) {
  return { element: el("section", { class: "page" }, el("h1", {}, "No such page"), note(`There is no page ${name}. The pages are in the bar above.`, "bad")), back: "#/pods" };
}

function failed(error, current, parameters) {
  const above = ABOVE[current];
  return {
    element: el("section", { class: "page" }, above ? el("p", { class: "crumbs" }, el("a", { href: `#/${above}` }, LISTED[above]), " /") : null, el("h1", {}, LISTED[current] || parameters.join("/")), note(error.message, "bad")),
    back: above && `#/${above}`,
  };
}

function showNavigation(current) {
  replace(document.getElementById("nav"), Object.entries(LISTED).map(([name, title]) => el("a", { href: `#/${name}`, "aria-current": name === current ? "page" : undefined }, title)));
  document.querySelector("#nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

function showLive() {
  const live = document.getElementById("live");
  live.dataset.state = stream.state;
  replace(live, LIVE[stream.state]);
  live.title = updates.off ? "Ask for updates again" : "Ask for no updates";
  live.setAttribute("aria-label", `${LIVE[stream.state]}: ${live.title}`);
}

function pause() {
  history.replaceState(null, "", `${location.pathname}${updates.off ? "" : "?updates=off"}${location.hash}`);
  stream.follow();
  showLive();
}

function theme() {
  return document.documentElement.dataset.theme || "system";
}

function showTheme() {
  const button = document.getElementById("theme");
  button.textContent = { system: "◐", light: "☀", dark: "☾" }[theme()];
  button.title = `Theme: ${theme()} (t)`;
  button.setAttribute("aria-label", `Theme: ${theme()}`);
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  localStorage.setItem("moorage.theme", next);
  showTheme();
  route();
}

stream.addEventListener("decision", (event) => shown.decision?.(event.detail));
stream.addEventListener("state", showLive);
document.getElementById("live").addEventListener("click", pause);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); }); // the address names the page
document.getElementById("theme").addEventListener("click", nextTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => route());
addEventListener("hashchange", route);
showLive();
showTheme();
route();
