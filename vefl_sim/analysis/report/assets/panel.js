"use strict";
// The panel next to the map: the chosen CV with its story and the explanation of its update, or the round as a whole.

const LATEST = 24; // events of a story that are shown at first

class Panel {
  constructor(data, cars, clock) {
    Object.assign(this, { data, cars, clock });
    this.node = document.getElementById("panel");
    this.shown = "";
    this.stories = new Map();
    clock.listen(() => this.update());
  }

  update() {
    const { clock, cars } = this;
    const row = cars.rowAt(clock.time);
    const { chosen: cv, time } = clock;
    const told = cv === null ? 0 : this.story(cv, time).length;
    const states = cv === null ? this.counts(time) : null;
    const key = [cv, row, told, cv === null ? JSON.stringify(states) : cars.state(cv, time)].join("|");
    if (key !== this.shown) {
      this.shown = key;
      this.keepingFocus(cv === null ? this.overview(row, states) : this.car(cv, row, time));
    }
    if (cv !== null) this.now.textContent = this.facts(cv, time);
  }

  /** Shows other content; the event that had the focus of the keyboard keeps it, else the panel gets it. */
  keepingFocus(content) {
    const focused = this.node.contains(document.activeElement) ? document.activeElement : null;
    hideTerm();
    this.node.replaceChildren(...content);
    const same = focused?.dataset.at && this.node.querySelector(`[data-at="${focused.dataset.at}"]`);
    if (focused) (same || this.node).focus({ preventScroll: true });
  }

  counts(time) {
    const counts = {};
    for (const cv of this.cars.cvs) {
      const state = this.cars.state(cv, time);
      counts[state] = (counts[state] ?? 0) + 1;
    }
    return counts;
  }

  overview(row, counts) {
    const { rounds, unit } = this.data;
    const states = Object.keys(STATES).filter((state) => state !== "outside" && counts[state]);
    const lines = states.map((state) => {
      const name = element("span", { class: "name" }, STATES[state].label);
      return element("li", {}, markerOf(state), name, element("b", {}, `${counts[state]}`));
    });
    const plan = `${rounds.ordered[row]} ordered, ${rounds.delivered[row]} delivered in the end`;
    const [used, lost] = [rounds.grants[row], rounds.grants_lost[row]].map((count) => whole.format(count));
    const grants = rounds.grants[row] ? ` ${lost} of ${used} grants of its orders were lost.` : "";
    return [
      element("h3", {}, `${capital(unit)} ${rounds.round[row]}`),
      element("p", { class: "quiet" }, `${rounds.in_coverage[row]} CVs in coverage at its start, ${plan}.${grants}`),
      element("ul", { class: "counts" }, ...lines),
      element("p", { class: "hint" }, "Choose a car to read its story, and why its update arrived or was lost."),
    ];
  }

  car(cv, row, time) {
    const { cars, data, clock } = this;
    const state = cars.state(cv, time);
    this.now = element("p", { class: "now" });
    const round = this.roundOf(cv, row, time);
    const text = cars.why.get(`${cv}/${round}`);
    const why = text ? text.split("\n").map((line) => element("p", { class: "why" }, line))
      : [element("p", { class: "quiet" }, `The server decided nothing about this CV in ${data.unit} ${round}.`)];
    const explained = element("div", { id: "why", "data-cv": cv, "data-round": round }, ...why);
    explain(explained);
    const told = this.story(cv, time);
    const story = told.slice(this.all === cv ? 0 : -LATEST).map(([at, words, mark]) => {
      const time = { type: "button", class: "time", "data-at": at, onclick: () => clock.set(at) };
      return element("li", { class: mark }, element("button", time, seconds(at)), ` ${words}`);
    });
    const more = () => {
      this.all = cv;
      this.shown = "";
      this.update();
    };
    const hidden = told.length - story.length;
    const button = element("button", { type: "button", onclick: more }, `Show ${hidden} earlier events`);
    const none = () => clock.choose(null);
    const close = { type: "button", class: "close", "aria-label": "Choose no car", onclick: none };
    const label = element("span", { class: "state" }, STATES[state].label);
    return [
      element("h3", {}, markerOf(state, 7), ` CV ${cv} `, label, element("button", close, "×")),
      this.now,
      element("h4", {}, `Why, in ${data.unit} ${round}`),
      explained,
      element("h4", {}, "Story so far"),
      element("ol", { class: "story" }, ...story.reverse()),
      hidden ? button : "",
    ];
  }

  /** The round whose decision about a CV matters now: it may work on an order of an earlier window. */
  roundOf(cv, row, time) {
    const decision = this.cars.decision(cv, time);
    return decision && time < (decision.ended ?? -1) ? decision.round : this.data.rounds.round[row];
  }

  /** What is known of a CV at this instant. */
  facts(cv, time) {
    const { cars } = this;
    const place = cars.place(cv, time);
    const nowhere = cars.tracks.length ? "not on the streets" : "its position is not recorded";
    const parts = [place ? `${Math.hypot(...place).toFixed(0)} m from the gNB` : nowhere];
    const order = cars.decision(cv, time);
    if (cars.state(cv, time) === "uploading") {
      const radio = cars.radio(cv, time);
      const mean = cars.meanRate(order);
      if (radio?.prbs === 0) parts.push("no pRBs now");
      else if (radio) parts.push(`${radio.prbs.toFixed(1)} pRBs and ${radio.mbps.toFixed(2)} Mbit/s when served`);
      else if (mean !== null) parts.push(`mean rate of this upload ${mean.toFixed(2)} Mbit/s`);
    }
    return `${seconds(time)}: ${parts.join(", ")}.`;
  }

  /** What happened to a CV up to a time: [time, words, class]. */
  story(cv, time) {
    if (!this.stories.has(cv)) this.stories.set(cv, this.wholeStory(cv));
    const story = this.stories.get(cv);
    return story.slice(0, 1 + lastUpTo(story, time, ([at]) => at));
  }

  wholeStory(cv) {
    const { cars, data } = this;
    const crossing = (at, n) => [at, n % 2 ? "left coverage" : "entered coverage", "move"];
    const chapter = (decision) => ("ended" in decision ? this.order(decision) : this.refusal(decision));
    const visits = (cars.visits.get(cv) ?? []).map(crossing);
    const chapters = (cars.decisions.get(cv) ?? []).flatMap(chapter);
    return [...visits, ...chapters].filter(([at]) => at !== null).sort((a, b) => a[0] - b[0])
      .map(([at, words, mark]) => [at, words.replace("%unit", data.unit), mark]);
  }

  refusal(decision) {
    const reason = this.data.reasons[decision.reason] ?? decision.reason;
    const words = `${STATES[decision.state].label} in %unit ${decision.round}`;
    return [[decision.at, reason ? `${words}: ${reason}` : words, decision.state]];
  }

  order(order) {
    return [
      [order.at, `ordered ${order.iterations} iterations in %unit ${order.round}`, "training"],
      [order.trained, "finished training", "training"],
      [order.started, "got its first slot", "uploading"],
      [order.ended, order.state === "delivered" ? this.delivery(order) : this.loss(order), order.state],
    ];
  }

  delivery(order) {
    const rate = this.cars.meanRate(order);
    const speed = rate ? ` at ${rate.toFixed(2)} Mbit/s on average` : "";
    return `update of ${kbit(order.bits)} delivered${speed}, paid ${order.paid}`;
  }

  loss(order) {
    const reason = this.data.reasons[order.reason] ?? order.reason;
    const rest = `${kbit(order.left)} of ${kbit(order.bits + order.left)} not sent`;
    return `update lost: ${reason}; ${rest}, paid ${order.paid}`;
  }
}

const kbit = (bits) => `${((bits ?? 0) / 1000).toFixed(0)} kbit`;
