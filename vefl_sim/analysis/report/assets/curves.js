"use strict";
// Small charts by round, side by side: all show the same round under the pointer or the arrow keys.

const CURVES = [
  { key: "metric", column: "accuracy", title: "Accuracy",
    note: "on the test set", format: percent, top: 1, colour: "--blue" },
  { key: "loss", title: "Loss", note: "on the test set", colour: "--blue" },
  { key: "share", column: "delivered_share", title: "Delivered",
    note: "share of ordered updates", format: percent, top: 1, colour: "--green" },
  { key: "cost", title: "Cost", note: "paid to CVs", colour: "--orange" },
  { key: "energy_j", title: "Energy", note: "of the ordered CVs", unit: "J", colour: "--red" },
  { key: "bits_per_joule", title: "Efficiency", note: "received per joule sent", unit: "bit/J", colour: "--purple" },
  { key: "grants_lost_share", title: "Lost grants", note: "above the capacity of their slot", format: percent, top: 1,
    colour: "--orange" },
];

/** What differs in a curve if the run has no classes: it is then judged by its loss, or by the root of that. */
function named(key, metric) {
  if (metric.share) return {};
  if (key === "metric") return { title: metric.name, column: metric.name, format: undefined, top: undefined };
  return key === "loss" ? { title: `Loss${metric.loss}` } : {};
}

class Curves {
  constructor(data, jump) {
    this.rounds = data.rounds;
    this.unit = data.unit;
    this.jump = jump;
    this.axis = "round";
    const share = data.rounds.ordered.map((count, row) => (count ? data.rounds.delivered[row] / count : null));
    this.values = { ...data.rounds, share };
    this.budget = data.budget;
    this.changes = data.changes;
    const isKnown = (key) => this.values[key].some((value) => value !== null);
    const known = (curve) => data.curves.includes(curve.key) && isKnown(curve.key);
    this.panels = CURVES.filter(known).map((curve) => this.panel({ ...curve, ...named(curve.key, data.metric) }));
    const holder = document.getElementById("curve-panels");
    const leavesOneAlone = this.panels.length % 4 === 1;
    holder.classList.add(this.panels.length % 3 && !leavesOneAlone ? "even" : "threes");
    holder.append(...this.panels.map((panel) => panel.node));
    for (const panel of this.panels) panel.redraw = chart(panel.body, (width) => this.draw(panel, width));
    for (const button of document.querySelectorAll("[data-axis]")) {
      if (button.dataset.axis === "round") button.textContent = `${data.unit}s`;
      button.addEventListener("click", () => this.useAxis(button));
    }
  }

  panel(curve) {
    const reading = element("span", { class: "reading" });
    const body = element("div");
    const heading = element("h3", {}, curve.title, reading);
    const title = `${curve.title} by ${this.unit}`;
    const saving = downloads(title, () => body.firstChild, () => this.table(curve));
    const note = element("div", { class: "beside" }, element("p", { class: "quiet" }, curve.note), saving);
    return { curve, reading, body, node: element("figure", { class: "curve" }, heading, note, body) };
  }

  /** The numbers of a curve, for a CSV file. */
  table(curve) {
    const values = this.values[curve.key];
    const rows = this.rounds.round.map((number, row) => [number, this.rounds.end[row] / 1000, values[row]]);
    return [[this.unit, "end_s", curve.column ?? curve.key], ...rows];
  }

  useAxis(chosen) {
    this.axis = chosen.dataset.axis;
    for (const button of document.querySelectorAll("[data-axis]")) {
      button.setAttribute("aria-pressed", button === chosen);
    }
    for (const panel of this.panels) panel.redraw();
  }

  place(row) {
    return this.axis === "round" ? this.rounds.round[row] : this.rounds.end[row] / 1000;
  }

  draw(panel, width) {
    const { curve } = panel;
    const height = 168;
    const [left, right, top, bottom] = [44, width - 12, 10, height - 24];
    const values = this.values[curve.key];
    const rows = values.map((_, row) => row).filter((row) => values[row] !== null);
    const limit = curve.key === "cost" ? this.budget : null;
    const largest = Math.max(...rows.map((row) => values[row]), limit ?? 0) || 1;
    const x = scale([this.place(0), this.place(values.length - 1)], [left, right]);
    const y = scale([0, curve.top ?? largest * (limit === null ? 1.06 : 1.2)], [bottom, top]);
    const svg = canvasOf(width, height, `${curve.title} by ${this.unit}`);
    yAxis(svg, y, ticks(0, curve.top ?? largest, 4), left, right, curve.format);
    const steps = ticks(this.place(0), this.place(values.length - 1), width / 80);
    if (this.axis === "round") xAxis(svg, x, steps.filter(Number.isInteger), bottom, String);
    else xAxis(svg, x, steps, bottom, (value) => `${value} s`);
    if (limit !== null) {
      svg.append(
        shape("line", { x1: left, x2: right, y1: y(limit), y2: y(limit), class: "limit" }),
        shape("text", { x: right, y: y(limit) - 5, class: "tick end" }, `budget ${short(limit)}`),
      );
    }
    for (const { at, text } of this.changes) {
      const row = this.rounds.end.findIndex((end) => end > at);
      const place = x(this.axis === "round" ? this.rounds.round[row] - 0.5 : at / 1000);
      const mark = shape("line", { x1: place, x2: place, y1: top, y2: bottom, class: "limit" });
      mark.append(shape("title", {}, text));
      svg.append(mark);
    }
    const line = rows.map((row, n) => `${n ? "L" : "M"}${x(this.place(row)).toFixed(1)} ${y(values[row]).toFixed(1)}`);
    svg.append(shape("path", { d: line.join(""), class: "line", stroke: `var(${curve.colour})` }));
    if (rows.length <= 30) {
      const fill = `var(${curve.colour})`;
      svg.append(...rows.map((row) => shape("circle", { cx: x(this.place(row)), cy: y(values[row]), r: 2.5, fill })));
    }
    panel.cursor = shape("line", { y1: top, y2: bottom, class: "cursor", visibility: "hidden" });
    panel.x = x;
    svg.append(panel.cursor);
    this.listen(svg, x, values.length);
    this.read(panel, rows.at(-1));
    return svg;
  }

  listen(svg, x, count) {
    const rows = Array.from({ length: count }, (_, row) => row);
    const nearest = (event) => {
      const at = event.clientX - svg.getBoundingClientRect().left;
      const distance = (row) => Math.abs(x(this.place(row)) - at);
      return rows.reduce((best, row) => (distance(row) < distance(best) ? row : best), 0);
    };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (event) => this.show(nearest(event)));
    svg.addEventListener("pointerleave", () => this.show(null));
    svg.addEventListener("blur", () => this.show(null));
    svg.addEventListener("click", (event) => this.jump(nearest(event)));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) this.show(Math.min(Math.max((this.shown ?? (step > 0 ? -1 : count)) + step, 0), count - 1));
      else if (event.key === "Enter" && this.shown !== null) this.jump(this.shown);
      else return;
      event.preventDefault();
    });
  }

  /** Shows the values of a round in all panels, or of the last round. */
  show(row) {
    this.shown = row;
    for (const panel of this.panels) {
      panel.cursor.setAttribute("visibility", row === null ? "hidden" : "visible");
      if (row !== null) {
        panel.cursor.setAttribute("x1", panel.x(this.place(row)));
        panel.cursor.setAttribute("x2", panel.x(this.place(row)));
      }
      this.read(panel, row ?? this.values[panel.curve.key].findLastIndex((value) => value !== null), row !== null);
    }
  }

  read(panel, row, named = false) {
    const value = this.values[panel.curve.key][row];
    const format = panel.curve.format ?? ((number) => short(number, panel.curve.unit));
    const text = value === null || value === undefined ? "–" : format(value);
    const when = named ? `${this.unit} ${this.rounds.round[row]} ` : "last ";
    panel.reading.replaceChildren(element("span", { class: "quiet" }, when), text);
  }
}
