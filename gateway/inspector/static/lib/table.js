// A table that draws only the rows that are seen, so that 5,000 nodes are no more work than 50.

import { el, replace } from "./dom.js";

const OVERSCAN = 8;
const PHONE = matchMedia("(max-width: 640px)");

export class Table {
  // columns: {key, title, width, number, sort, hint, cell(row), paint(row, cell), and on a phone
  // narrow: another width, phone: "hide" | "line"}
  constructor({ columns, key, open, sort, label, empty = "Nothing here." }) {
    Object.assign(this, { key, open, onSort: sort, empty });
    this.rows = [];
    this.selected = undefined;
    this.order = { key: "", descending: false };
    this.head = el("div", { class: "row head", role: "row" });
    this.window = el("div", { class: "window", role: "presentation" });
    this.body = el("div", { class: "body", tabindex: "0", role: "rowgroup", "aria-label": label }, this.window);
    this.element = el("div", { class: "table", role: "table", "aria-label": label }, el("div", { role: "rowgroup" }, this.head), this.body);
    this.body.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.resized = new ResizeObserver(() => this.schedule());
    this.resized.observe(this.body);
    this.changed = () => this.setColumns(this.columns);
    PHONE.addEventListener("change", this.changed);
    this.setColumns(columns);
  }

  destroy() {
    this.resized.disconnect();
    PHONE.removeEventListener("change", this.changed);
  }

  setColumns(columns) {
    this.columns = columns;
    this.shown = columns.filter((column) => !(PHONE.matches && column.phone === "hide"));
    const cells = this.shown.filter((column) => !(PHONE.matches && column.phone === "line"));
    this.hasLine = cells.length < this.shown.length;
    this.element.style.setProperty("--columns", cells.map((column) => (PHONE.matches && column.narrow) || column.width).join(" "));
    this.element.classList.toggle("two", this.hasLine);
    this.height = this.hasLine ? 54 : 30;
    this.drawHead();
    this.draw();
  }

  setRows(rows) {
    this.rows = rows;
    this.element.setAttribute("aria-rowcount", rows.length);
    this.schedule();
  }

  setOrder(key, descending) {
    this.order = { key, descending };
    this.drawHead();
  }

  drawHead() {
    replace(this.head, this.shown.filter((column) => !(PHONE.matches && column.phone === "line")).map((column) => {
      const active = this.order.key === column.key;
      const arrow = active ? (this.order.descending ? " ↓" : " ↑") : "";
      const attributes = { role: "columnheader", class: column.number ? "cell number" : "cell", title: column.hint || column.title, "aria-sort": active ? (this.order.descending ? "descending" : "ascending") : undefined };
      if (!column.sort) return el("div", attributes, column.title);
      return el("div", attributes, el("button", { type: "button", onclick: () => this.onSort(column.key, active ? !this.order.descending : Boolean(column.number)) }, column.title + arrow));
    }));
  }

  schedule() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    this.window.style.height = this.rows.length ? `${this.rows.length * this.height}px` : "auto";
    this.head.style.paddingRight = `${this.body.offsetWidth - this.body.clientWidth}px`; // as the scrollbar takes
    if (!this.rows.length) return replace(this.window, el("div", { role: "row" }, el("p", { class: "empty", role: "cell" }, this.empty)));
    const first = Math.max(0, Math.floor(this.body.scrollTop / this.height) - OVERSCAN);
    const last = Math.min(this.rows.length, Math.ceil((this.body.scrollTop + this.body.clientHeight) / this.height) + OVERSCAN);
    const drawn = [];
    for (let index = first; index < last; index += 1) drawn.push(this.drawRow(this.rows[index], index));
    replace(this.window, drawn);
  }

  drawRow(row, index) {
    const element = el("div", { class: "row", role: "row", "data-index": index, "aria-rowindex": index + 1, "aria-selected": this.key(row) === this.selected ? "true" : undefined });
    element.style.transform = `translateY(${index * this.height}px)`;
    for (const column of this.shown) {
      const value = column.cell(row);
      const line = PHONE.matches && column.phone === "line";
      const cell = el("div", { class: `cell${column.number ? " number" : ""}${line ? " line" : ""}`, role: "cell" }, value);
      if (column.paint) column.paint(row, cell);
      if (typeof value === "string" && value && !cell.title) cell.title = value;
      element.append(cell);
    }
    return element;
  }

  clicked(event) {
    const row = event.target.closest(".row");
    if (!row || event.target.closest("a, button") || getSelection().toString()) return;
    this.select(Number(row.dataset.index));
    this.open?.(this.rows[row.dataset.index]);
  }

  index() {
    return this.rows.findIndex((row) => this.key(row) === this.selected);
  }

  move(step) {
    this.select(Math.min(this.rows.length - 1, Math.max(0, this.index() + step)));
  }

  select(index) {
    if (!this.rows[index]) return;
    this.selected = this.key(this.rows[index]);
    const top = index * this.height;
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    if (top + this.height > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top + this.height - this.body.clientHeight;
    this.draw();
    this.onSelect?.(this.rows[index]);
  }

  openSelected() {
    const row = this.rows[this.index()];
    if (row) this.open?.(row);
  }
}
