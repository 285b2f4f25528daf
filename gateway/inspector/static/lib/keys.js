// What the keyboard does: a page offers actions by key, the rest works everywhere.

import { el, replace } from "./dom.js";

const EVERYWHERE = [["/", "search"], ["j / k", "next, previous row"], ["Enter", "open the row"], ["Escape", "leave the search, or go back"], ["g then p g n m l r o s", "pods, groups, nodes, map, plugins, replicas, policy, shadow"], ["t", "theme: as the system, light, dark"], ["?", "this help"]];

const PAGES = { p: "pods", g: "groups", n: "nodes", m: "map", l: "plugins", r: "replicas", o: "policy", s: "shadow" };

export class Keys {
  constructor(theme) {
    this.page = {};
    this.dialog = document.getElementById("keys");
    this.theme = theme;
    document.addEventListener("keydown", (event) => this.pressed(event));
    document.getElementById("help").addEventListener("click", () => this.help());
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.dialog.open) return;
    const writing = event.target.closest?.("input, select, textarea");
    if (writing) return this.whileWriting(event, writing);
    if (event.key === "Enter" && event.target.closest?.("a, button")) return;
    const action = this.action(event.key);
    this.jumps = event.key === "g";
    if (!action) return;
    event.preventDefault();
    action();
  }

  whileWriting(event, field) {
    if (event.key === "Escape") { field.blur(); event.preventDefault(); }
    if (event.key === "Enter" && this.page.table) { field.blur(); this.page.table.move(this.page.table.index() < 0 ? 1 : 0); event.preventDefault(); }
  }

  action(key) {
    if (this.jumps && PAGES[key]) return () => { location.hash = `#/${PAGES[key]}`; };
    const table = this.page.table;
    const actions = {
      "/": this.page.search && (() => { this.page.search.focus(); this.page.search.select(); }),
      j: table && (() => table.move(1)),
      ArrowDown: table && (() => table.move(1)),
      k: table && (() => table.move(-1)),
      ArrowUp: table && (() => table.move(-1)),
      Enter: table && (() => table.openSelected()),
      Escape: this.page.back && (() => { location.hash = this.page.back; }),
      t: this.theme,
      "?": () => this.help(),
    };
    return actions[key];
  }

  help() {
    const rows = EVERYWHERE.map(([key, what]) => el("div", {}, el("dt", {}, key.split(" ").map((part) => (part === "/" && key !== "/") || part === "then" ? ` ${part} ` : el("kbd", {}, part))), el("dd", {}, what)));
    replace(this.dialog, el("h2", {}, "Keyboard"), el("dl", { class: "keys" }, rows), el("form", { method: "dialog" }, el("button", { autofocus: true }, "Close")));
    this.dialog.showModal();
  }
}
