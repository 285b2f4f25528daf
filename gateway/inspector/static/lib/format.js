// How numbers and times are shown, what matches a search, and what the address says.

import { joined } from "./api.js";

export function seconds(value) {
  if (value === undefined || value === null) return "–";
  if (value >= 100) return `${Math.round(value)} s`;
  if (value >= 1) return `${value.toPrecision(3)} s`;
  if (value >= 0.001) return `${(value * 1e3).toPrecision(3)} ms`;
  return value ? `${Math.round(value * 1e6)} µs` : "0";
}

// How long ago, as kubectl shows ages.
export const age = (time) => span((Date.now() - new Date(time)) / 1000);

export function span(passed) {
  if (passed < 120) return `${Math.max(0, Math.floor(passed))}s`;
  if (passed < 7200) return `${Math.floor(passed / 60)}m`;
  if (passed < 172800) return `${Math.floor(passed / 3600)}h`;
  return `${Math.floor(passed / 86400)}d`;
}

export const date = (time) => new Date(time).toLocaleString("sv"); // 2026-11-23 09:12:01

export const clock = (time) => new Date(time).toLocaleTimeString([], { hour12: false });

export const count = (value) => (value ?? 0).toLocaleString("en").replaceAll(",", "\u202f");

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function score(value) {
  if (value === undefined || value === null) return "";
  return value >= 99.95 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);
}

export function amount(resource, value) {
  if (resource === "cpu") return value % 1000 ? `${value}m` : String(value / 1000);
  if (!/memory|storage|hugepages/.test(resource)) return String(value);
  const units = ["", "Ki", "Mi", "Gi", "Ti"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)}${units[unit]}`;
}

export const OUTCOMES = ["bound", "binding", "unschedulable", "failed", "bind failed", "preempting"];

export const path = (...parts) => `#/${joined(...parts)}`;

// Say of nodes, best first, which place each has in Moorage's order, which equal ones share.
export function ranked(nodes) {
  nodes.forEach((node, index) => {
    if (node.total === undefined || node.total === null) return;
    const same = (other) => other?.total === node.total;
    node.rank = same(nodes[index - 1]) ? nodes[index - 1].rank : index + 1;
    node.tied = same(nodes[index - 1]) || same(nodes[index + 1]);
    node.place = `${node.tied ? "tied for number" : "number"} ${node.rank}`;
  });
  return nodes;
}

// Whether a text has every word of a search.
export const matches = (text, search) => search.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

// How many of all are shown, in words.
export const shownOf = (number, all, one) => (number === all ? plural(all, one) : `${count(number)} of ${plural(all, one)}`);

// What the address says after "?", and how a page changes that without being left.
export const asked = () => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] || ""));

export function ask(values) {
  const chosen = Object.entries({ ...asked(), ...values }).filter(([, value]) => value);
  const text = new URLSearchParams(chosen).toString();
  history.replaceState(null, "", `${location.hash.split("?")[0] || "#/pods"}${text ? `?${text}` : ""}`);
}
