// Builds elements. Text is always a text node: nothing that comes from the cluster becomes markup.

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
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
  return el("span", { class: share > 0.9 ? "meter full" : "meter", title: label }, fill, el("b", {}, `${Math.round(share * 100)} %`));
}

// A pod's name, of which the end is never cut off: it tells the pods of a controller apart.
const TAIL = 12; // characters

export function podName({ namespace, pod }, href) {
  const cut = Math.max(0, pod.length - TAIL);
  return el("a", { class: "name cut", href, title: `${namespace}/${pod}` }, el("span", {}, el("span", { class: "muted" }, `${namespace}/`), pod.slice(0, cut)), el("span", {}, pod.slice(cut)));
}

// Text in which `...` is what one types.
export const typed = (text) => text.split("`").map((part, index) => (index % 2 ? el("code", { class: "mono" }, part) : part));
