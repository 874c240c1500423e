"use strict";
// The timeline of a round: a lane per CV with its order, training, waiting, upload, deadline and sojourn bound.

const LANE = 22;
const REDRAW_MS = 200; // at high speed, not every round can be drawn

class Timeline {
  constructor(data, cars, clock) {
    Object.assign(this, { data, cars, clock });
    this.text = document.getElementById("lane-text");
    this.row = -1;
    this.redraw = chart(document.getElementById("lanes"), (width) => this.draw(width));
    const [head, lanes] = ["timeline-head", "lanes"].map((id) => document.getElementById(id));
    head.append(downloads("Timeline", () => lanes.firstChild, () => this.table()));
    clock.listen(() => this.update());
  }

  update() {
    const row = this.cars.rowAt(this.clock.time);
    const isOther = row !== this.row || this.clock.chosen !== this.chosen;
    if (isOther && (!this.clock.playing || performance.now() - this.drawnAt > REDRAW_MS)) this.keepingFocus();
    const x = this.x(Math.min(this.clock.time, this.data.rounds.end[this.row]));
    for (const name of ["x1", "x2"]) this.cursor.setAttribute(name, x);
  }

  /** Redraws; the CV that had the focus of the keyboard keeps it. */
  keepingFocus() {
    const focused = document.activeElement?.closest("#lanes [data-cv], #refused [data-cv]")?.dataset.cv;
    this.redraw();
    if (focused) document.querySelector(`#lanes [data-cv="${focused}"], #refused [data-cv="${focused}"]`)?.focus();
  }

  /** [cv, decisions] of all CVs that work on an order in a round, and of those that only got refusals. */
  lanes(row) {
    const [start, end] = [this.data.rounds.start[row], this.data.rounds.end[row]];
    const lanes = [];
    for (const [cv, all] of this.cars.decisions) {
      const lasts = (one) => "ended" in one && (one.ended ?? Infinity) > start;
      const own = all.filter((one) => one.at < end && (one.at >= start || lasts(one)));
      if (own.length) lanes.push([cv, own]);
    }
    lanes.sort((a, b) => a[0] - b[0]);
    const works = ([, own]) => own.some((one) => "ended" in one);
    return [lanes.filter(works), lanes.filter((lane) => !works(lane))];
  }

  /** The orders and refusals that are shown, for a CSV file; times in ms. */
  table() {
    const decisions = this.lanes(this.row).flat().flatMap(([, own]) => own);
    const names = [...new Set(decisions.flatMap((decision) => Object.keys(decision)))];
    return [names, ...decisions.map((decision) => names.map((name) => decision[name]))];
  }

  /** CVs without an order, a line per reason, each as a button. */
  refused(lanes) {
    const lines = new Map();
    for (const [cv, own] of lanes) {
      const { state, reason } = own.at(-1);
      const words = reason ? `${STATES[state].label}: ${this.data.reasons[reason] ?? reason}` : STATES[state].label;
      addTo(lines, `${state}|${words}`, [cv, own.at(-1)]);
    }
    return [...lines].map(([key, cvs]) => {
      const [state, words] = [key.slice(0, key.indexOf("|")), key.slice(key.indexOf("|") + 1)];
      const buttons = cvs.map(([cv, decision]) => {
        const tell = () => this.tell(cv, decision.round);
        const listeners = { onclick: () => this.choose(cv, decision), onfocus: tell, onpointerenter: tell };
        const names = { class: cv === this.clock.chosen ? "chosen" : "", "data-cv": cv, "aria-label": `CV ${cv}` };
        return element("button", { type: "button", ...names, ...listeners }, `${cv}`);
      });
      const label = element("span", {}, markerOf(state), ` ${cvs.length} ${words}`);
      return element("div", { class: "refused" }, label, ...buttons);
    });
  }

  draw(width) {
    const { data, clock } = this;
    this.row = this.cars.rowAt(clock.time);
    this.chosen = clock.chosen;
    this.drawnAt = performance.now();
    const [start, end] = [data.rounds.start[this.row], data.rounds.end[this.row]];
    const [lanes, refused] = this.lanes(this.row);
    document.getElementById("refused").replaceChildren(...this.refused(refused));
    const [left, right, top] = [66, width - (width < 560 ? 12 : 130), 26];
    const height = top + lanes.length * LANE + 10;
    this.x = scale([start, end], [left, right]);
    document.getElementById("timeline-title").textContent =
      `${data.unit} ${data.rounds.round[this.row]}, ${seconds(start)} to ${seconds(end)}`;
    const svg = canvasOf(width, height, `Timeline of ${data.unit} ${data.rounds.round[this.row]}`);
    svg.setAttribute("role", "group");
    for (const at of ticks(start, end, Math.max(width / 110, 2))) {
      svg.append(shape("line", { x1: this.x(at), x2: this.x(at), y1: top - 6, y2: height - 8, class: "grid" }),
        shape("text", { x: this.x(at), y: 12, class: "tick middle" }, seconds(at, (end - start) < 5000 ? 2 : 1)));
    }
    lanes.forEach(([cv, own], n) => svg.append(this.lane(cv, own, top + n * LANE, width, right)));
    if (!lanes.length) svg.append(shape("text", { x: left + 6, y: top + 8, class: "tick" }, "no CV works on an order"));
    this.cursor = shape("line", { y1: top - 8, y2: height - 8, class: "cursor" });
    svg.append(this.cursor);
    return svg;
  }

  lane(cv, own, y, width, right) {
    const decision = own.at(-1);
    const choose = () => this.choose(cv, decision);
    const tell = () => this.tell(cv, decision.round);
    const group = shape("g", {
      class: `lane${cv === this.clock.chosen ? " chosen" : ""}`, tabindex: 0, role: "button", "data-cv": cv,
      "aria-label": `CV ${cv}: ${STATES[decision.state]?.label ?? "in progress"}`,
      onclick: choose, onfocus: tell, onpointerenter: tell,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    });
    group.append(shape("rect", { x: 0, y: y - 1, width, height: LANE - 2, class: "back" }),
      shape("text", { x: 52, y: y + 14, class: "tick end name" }, `CV ${cv}`));
    const orders = own.filter((one) => "ended" in one);
    for (const order of orders) this.bars(group, order, y, right);
    for (const order of orders) this.marks(group, order, y, right);
    const last = orders.findLast((order) => order.ended !== null && this.x(order.ended) <= right + 0.5);
    if (last && right > 440) {
      group.append(shape("text", { x: right + 12, y: y + 14, class: `tick ${last.state}` }, this.result(last)));
    }
    return group;
  }

  /** The bars of an order. */
  bars(group, order, y, right) {
    const end = order.ended ?? this.cars.rounds.end[this.row];
    const spans = [
      ["training", order.at, order.trained ?? end, 10],
      ["waiting", order.trained, order.started ?? (order.trained === null ? null : end), 6],
      ["uploading", order.started, end, 14],
    ];
    const [low, high] = [this.x(this.cars.rounds.start[this.row]), right];
    const clipped = (at) => Math.min(Math.max(this.x(at), low), high);
    for (const [kind, from, to, size] of spans) {
      if (from === null || to === null || clipped(to) - clipped(from) < 0.3) continue;
      const box = { x: clipped(from), width: clipped(to) - clipped(from), y: y + (LANE - 2 - size) / 2, height: size };
      const profile = kind === "uploading" ? this.profile(order.cv, from, to, box) : [];
      group.append(shape("rect", { ...box, rx: 1.5, fill: `url(#fill-${kind})`, opacity: profile.length ? 0.35 : 1 }));
      group.append(...profile);
    }
  }

  /** Where it is recorded, how many of all pRBs an upload had, bin by bin. */
  profile(cv, from, to, box) {
    const bins = this.cars.bins.get(cv);
    if (!bins) return [];
    const width = this.cars.uploads.bin_ms;
    const x = (at) => Math.min(Math.max(this.x(at), box.x), box.x + box.width);
    const first = 1 + lastUpTo(bins.numbers, Math.floor(from / width) - 1);
    return bins.numbers.slice(first, 1 + lastUpTo(bins.numbers, to / width)).map((number, n) => {
      const height = (box.height * bins.prbs[first + n]) / this.data.prbs;
      const start = x(number * width);
      const bin = { x: start, width: x((number + 1) * width) - start, y: box.y + box.height - height, height };
      return shape("rect", { ...bin, fill: "var(--blue)", "shape-rendering": "crispEdges" });
    });
  }

  /** Deadline, sojourn bound and end of an order. */
  marks(group, order, y, right) {
    const low = this.x(this.cars.rounds.start[this.row]);
    const visible = (at) => at !== null && this.x(at) >= low && this.x(at) <= right + 0.5;
    if (visible(order.deadline)) {
      const x = this.x(order.deadline);
      group.append(shape("line", { x1: x, x2: x, y1: y, y2: y + LANE - 3, class: "deadline" }));
    }
    if (visible(order.sojourn)) {
      group.append(shape("circle", { cx: this.x(order.sojourn), cy: y + LANE / 2 - 1, r: 3, class: "sojourn" }));
    }
    if (visible(order.ended)) group.append(this.mark(order.state, this.x(order.ended), y));
  }

  /** How an order ended, in a word; a rate is the mean over the slots that the upload used. */
  result(order) {
    const rate = this.cars.meanRate(order);
    if (order.state === "lost" || !rate) return STATES[order.state].label;
    return `${rate.toFixed(1)} Mbit/s`;
  }

  mark(state, x, y) {
    const marker = markerOf(state, 5.5);
    marker.setAttribute("x", x - 7.5);
    marker.setAttribute("y", y + (LANE - 2) / 2 - 7.5);
    return marker;
  }

  tell(cv, round) {
    const text = this.cars.why.get(`${cv}/${round}`) ?? "";
    this.text.replaceChildren(element("b", {}, `CV ${cv}: `), text.split("\n").join(" "));
  }

  choose(cv, decision) {
    this.clock.pause();
    this.clock.chosen = cv;
    const inside = decision.ended !== null && decision.ended !== undefined ? decision.ended - 1 : decision.at;
    this.clock.set(Math.min(inside, this.data.rounds.end[this.row] - 1));
  }
}
