// Colours of scores and rejections, and the strip that shows all nodes at once.

import { TOUCH, el, ended, printable } from "./dom.js";

const ROW = 18;
const GAP = 2;
const DARK = matchMedia("(prefers-color-scheme: dark)");

const LIGHT_STEPS = [[241, 245, 250], [198, 219, 239], [123, 174, 214], [49, 117, 182], [8, 58, 122]];
const DARK_STEPS = [[30, 36, 46], [33, 62, 98], [40, 96, 152], [84, 148, 208], [188, 220, 250]];

let palette = []; // by score, so that nothing is worked out for each cell
let inks = []; // black or white, whichever has the better contrast: 4.58 at least

// Chooses the colours of the theme that is shown now.
export function recolor() {
  const dark = (document.documentElement.dataset.theme || (DARK.matches ? "dark" : "")) === "dark";
  const steps = dark ? DARK_STEPS : LIGHT_STEPS;
  const mixes = Array.from({ length: 101 }, (_, value) => {
    const place = (value / 100) * (steps.length - 1);
    const lower = Math.min(steps.length - 2, Math.floor(place));
    return steps[lower].map((from, part) => Math.round(from + (steps[lower + 1][part] - from) * (place - lower)));
  });
  palette = mixes.map((mixed) => `rgb(${mixed.join(" ")})`);
  inks = mixes.map((mixed) => (luminance(mixed) > 0.179 ? "#000" : "#fff"));
}

const linear = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);

const step = (value) => Math.round(Math.min(100, Math.max(0, value)));
const heat = (value) => palette[step(value)];

export function paint(cell, value) {
  if (value === undefined || value === null) return;
  cell.style.background = heat(value);
  cell.style.color = inks[step(value)];
}

// One column for each node, one line for each plugin. lines: {title, value(node)} with a value of
// 0..100, undefined where there is none, or -1 for a rejection.
export class Strip {
  constructor({ open, label }) {
    this.open = open;
    this.canvas = el("canvas", { class: "strip-canvas", role: "img", "aria-label": label });
    this.labels = el("div", { class: "strip-labels" });
    this.reading = el("output", { class: "strip-reading" });
    this.element = el("div", { class: "strip" }, this.labels, this.canvas, this.reading);
    this.nodes = [];
    this.lines = [];
    this.canvas.addEventListener("pointermove", (event) => this.read(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.read(this.marked));
    this.canvas.addEventListener("click", (event) => { const node = this.at(event); if (node) this.open(node); });
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.element);
  }

  destroy() {
    this.resized.disconnect();
  }

  show(nodes, lines) {
    this.nodes = nodes;
    this.lines = lines;
    this.labels.replaceChildren(...lines.map((line) => el("span", { class: "cut", title: line.title }, ended(line.title))));
    this.draw();
    this.read(nodes.includes(this.marked) ? this.marked : undefined);
  }

  mark(node) {
    this.marked = node;
    this.draw();
    this.read(node);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.nodes[Math.floor(((event.clientX - box.left) / box.width) * this.nodes.length)];
  }

  read(node) {
    if (!node) return void (this.reading.textContent = this.nodes.length ? `Each column is a node, in the order of the table. ${TOUCH.matches ? "Touch one to read it and find it." : "Point at one to read it, click to find it."}` : "");
    const rejected = node.verdict === "rejected" ? `rejected by ${node.plugin}: ${node.reason}` : "";
    const rank = node.place ? `${node.place}, total ${node.total.toFixed(2)}` : "";
    this.reading.textContent = printable([node.node, rejected || rank].filter(Boolean).join(" · "));
  }

  draw() {
    const width = this.canvas.clientWidth;
    const height = this.lines.length * (ROW + GAP);
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    const rejected = getComputedStyle(this.element).getPropertyValue("--rejected").trim();
    const marker = getComputedStyle(this.element).getPropertyValue("--accent").trim();
    const columns = Math.min(this.canvas.width, this.nodes.length);
    this.lines.forEach((line, row) => {
      for (let column = 0; column < columns; column += 1) {
        const value = this.value(line, column, columns);
        if (value === undefined) continue;
        context.fillStyle = value < 0 ? rejected : heat(value);
        const left = Math.floor((column * this.canvas.width) / columns);
        const right = Math.floor(((column + 1) * this.canvas.width) / columns);
        const inset = right - left > 6 * ratio ? 1 : 0;
        context.fillRect(left, row * (ROW + GAP) * ratio, right - left - inset, ROW * ratio);
      }
    });
    const index = this.marked ? this.nodes.indexOf(this.marked) : -1;
    if (index < 0) return;
    context.strokeStyle = marker;
    context.lineWidth = 2 * ratio;
    const left = (index * this.canvas.width) / this.nodes.length;
    const wide = Math.max(4 * ratio, this.canvas.width / this.nodes.length);
    context.strokeRect(left - ratio, ratio, wide, this.canvas.height - 2 * ratio);
  }

  // Of several nodes in one column the most extreme one is shown: a rejection, or the best.
  value(line, column, columns) {
    let best;
    const end = Math.max(Math.floor(((column + 1) * this.nodes.length) / columns), Math.floor((column * this.nodes.length) / columns) + 1);
    for (let index = Math.floor((column * this.nodes.length) / columns); index < end; index += 1) {
      const value = line.value(this.nodes[index]);
      if (value !== undefined && (best === undefined || value > best)) best = value;
    }
    return best;
  }
}
