// Builds elements. Text is always a text node: nothing that comes from the cluster becomes markup,
// and what turns the direction of writing, or is no character, is written out.

import { every } from "./api.js";

const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

export function printable(text) {
  return text.replace(UNPRINTABLE, (found) => (found === "\n" || found === "\t" ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : printable(String(value)));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(printable(String(child))));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return el("dl", { class: "facts" }, shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

export function note(text, kind = "") {
  return el("p", { class: `note ${kind}`, role: kind === "bad" ? "alert" : "status" }, text);
}

export function badge(text, kind = text) {
  return el("span", { class: "badge", "data-kind": kind }, text);
}

export function bar(share, label) {
  const fill = el("i", {});
  fill.style.width = `${Math.min(100, Math.max(0, share * 100))}%`;
  return el("span", { class: share > 0.9 ? "meter full" : "meter", title: label }, el("span", {}, fill), el("b", {}, `${Math.round(share * 100)} %`));
}

export function tile(title, value, more = "") {
  return el("div", { class: "tile" }, el("b", {}, value), el("span", {}, title), more && el("small", {}, more));
}

// A table of few rows, each of them a card on a phone; numbers: the places of the columns that have some.
export function plain(label, titles, rows, numbers = []) {
  const cells = (tag, row) => el("tr", {}, row.map((each, index) => el(tag, { class: numbers.includes(index) ? "number" : undefined, "data-title": tag === "td" ? titles[index] : undefined }, each)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", { class: "plain" }, el("thead", {}, cells("th", titles)), el("tbody", {}, rows.map((row) => cells("td", row)))));
}

// A name of which the end is never cut off: it tells the pods of a controller apart. Of one with a domain, the begin does.
const TAIL = 12; // characters

export function named(name, href, before = "") {
  return el("a", { class: "name cut", href, title: before + name }, ended(name, before && el("span", { class: "muted" }, before)));
}

// Two parts, for a class "cut": of the first, the end may be cut off.
export function ended(name, before = "") {
  const cut = name.includes(".") ? name.length : Math.max(0, name.length - TAIL);
  return [el("span", {}, before, name.slice(0, cut)), el("span", {}, name.slice(cut))];
}

export const podName = ({ namespace, pod }, href) => named(pod, href, `${namespace}/`);

// A page that asks again every so many milliseconds, and says so where there is no answer.
export async function polled(title, milliseconds, load) {
  const body = el("div", {}, await load());
  const destroy = every(milliseconds, async () => replace(body, await load().catch((error) => note(error.message, "bad"))));
  return { element: el("section", { class: "page" }, el("div", { class: "toolbar" }, el("h1", {}, title)), body), destroy };
}

// Where there is no pointer to rest on a thing.
export const TOUCH = matchMedia("(hover: none)");

// Text in which `...` is what one types.
export const typed = (text) => text.split("`").map((part, index) => (index % 2 ? el("code", { class: "mono" }, part) : part));
