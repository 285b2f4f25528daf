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
