// Lines over time, drawn by uPlot.

import { el } from "./dom.js";

const COLORS = ["#3b6fd4", "#d97706", "#0f9d76", "#c2416b", "#7c5cd6", "#5b8c1a", "#0891b2", "#a16207"];

export const colorOf = (index) => COLORS[index % COLORS.length];

export class Chart {
  // series: {label, color}
  constructor({ series, format, height = 150, label }) {
    this.window = [0, 1]; // seconds since 1970
    this.element = el("figure", { class: "chart", role: "img", "aria-label": label });
    const style = getComputedStyle(document.documentElement);
    const muted = style.getPropertyValue("--muted").trim();
    const line = style.getPropertyValue("--line").trim();
    const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    this.height = height;
    const times = (plot, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit", second: "2-digit" }));
    this.plot = new window.uPlot({
      width: 300,
      height,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { range: () => this.window }, y: { range: (plot, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      padding: [8, 28, 0, 0],
      axes: [{ ...axis, size: 26, space: 70, values: times }, { ...axis, size: 62, space: 26, values: (plot, splits) => splits.map(format) }],
      series: [{}, ...series.map((each) => ({ label: each.label, stroke: each.color, width: 1.5, spanGaps: true, points: { show: true, size: 4 } }))],
    }, [[], ...series.map(() => [])], this.element);
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.element);
  }

  fit() {
    const width = this.element.clientWidth;
    if (width) this.plot.setSize({ width, height: this.height });
  }

  // from, to: seconds since 1970
  show(times, columns, from, to) {
    this.window = [from, to];
    this.plot.setData([times, ...columns]);
  }

  destroy() {
    this.resized.disconnect();
    this.plot.destroy();
  }
}
