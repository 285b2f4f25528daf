// A table that draws only the rows that are seen, so that 5,000 nodes are no more work than 50.
// A frame of scrolling reads once where the table stands, then writes: rows that stay are kept, and few
// are added, so that a fast wheel never waits; what is missing comes with the next frames.

import { el, replace } from "./dom.js";

const OVERSCAN = 4;
const ADDED = 8; // rows in a frame of scrolling, at most
const PHONE = matchMedia("(max-width: 640px)");

export class Table {
  // columns: {key, title, width, number, sort, hint, cell(row), paint(row, cell), and on a phone
  // narrow: another width, phone: "hide" | "line"}
  constructor({ columns, key, open, sort, label, empty = "Nothing here." }) {
    Object.assign(this, { key, open, onSort: sort, empty });
    this.rows = [];
    this.drawn = new Map(); // elements of rows by index
    this.tall = 0; // pixels of the body
    this.selected = undefined;
    this.order = { key: "", descending: false };
    this.head = el("div", { class: "row head", role: "row" });
    this.window = el("div", { class: "window", role: "presentation" });
    this.body = el("div", { class: "body", tabindex: "0", role: "rowgroup", "aria-label": label }, this.window);
    this.element = el("div", { class: "table", role: "table", "aria-label": label }, el("div", { role: "rowgroup" }, this.head), this.body);
    this.body.addEventListener("scroll", () => this.schedule(false), { passive: true });
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.resized = new ResizeObserver(() => this.fit());
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

  // The size of the window on the rows, and how much the scrollbar takes of it.
  fit() {
    this.tall = this.body.clientHeight;
    this.head.style.paddingRight = `${this.body.offsetWidth - this.body.clientWidth}px`;
    this.schedule();
  }

  // again: the rows, or what they show, may have changed.
  schedule(again = true) {
    this.changes ||= again;
    this.pending ||= requestAnimationFrame(() => { this.pending = 0; this.draw(this.changes); });
  }

  draw(again = true) {
    const top = this.body.scrollTop;
    this.changes = false;
    if (again) this.begin();
    const first = Math.max(0, Math.floor(top / this.height) - OVERSCAN);
    const last = Math.min(this.rows.length, Math.ceil((top + this.tall) / this.height) + OVERSCAN);
    for (const [index, element] of this.drawn) {
      if (index >= first && index < last) continue;
      this.drawn.delete(index);
      element.remove();
    }
    const missing = [];
    for (let index = first; index < last; index += 1) if (!this.drawn.has(index)) missing.push(index);
    const seen = (index) => index * this.height >= top - this.height && index * this.height < top + this.tall;
    missing.sort((one, other) => seen(other) - seen(one) || one - other);
    if (!again && missing.splice(ADDED).length) this.schedule(false);
    for (const index of missing) this.drawn.set(index, this.drawRow(this.rows[index], index));
    const next = [...this.drawn.keys()].sort((one, other) => other - one); // DOM order is the rows', for who reads or tabs through them
    next.forEach((index, place) => { const element = this.drawn.get(index); if (!element.parentNode) this.window.insertBefore(element, place ? this.drawn.get(next[place - 1]) : null); });
  }

  begin() {
    this.drawn.clear();
    replace(this.window, this.rows.length ? null : el("div", { role: "row" }, el("p", { class: "empty", role: "cell" }, this.empty)));
    this.window.style.height = this.rows.length ? `${this.rows.length * this.height}px` : "auto";
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
