"use strict";
// Starts everything once the data are unpacked.

async function start() {
  const data = await readData();
  patterns();
  const replay = document.getElementById("replay");
  if (!replay) { // nobody trains in a vehicle, so there is nothing to replay
    new Curves(data, () => {});
    drawConfusion(data);
    useTerms(data.terms);
    return data;
  }
  const cars = new Cars(data);
  const clock = new Clock(data.end);
  const jump = (row) => {
    clock.set(data.rounds.start[row]);
    replay.scrollIntoView({ block: "start" });
  };
  new Curves(data, jump);
  drawFunnel(data, jump);
  const map = new CarMap(data, cars, clock);
  new Timeline(data, cars, clock);
  wireTransport(clock, cars, data.unit);
  drawStrip(data, clock);
  drawLegend(cars, map);
  drawShares(data);
  drawConfusion(data);
  useTerms(data.terms);
  new Panel(data, cars, clock);
  const stories = [...document.querySelectorAll("[data-action=jump]")];
  for (const button of stories) {
    button.addEventListener("click", () => {
      clock.pause();
      tellStory(clock, button);
      replay.scrollIntoView({ block: "start" });
      document.getElementById("map").focus({ preventScroll: true });
    });
  }
  if (stories.length) tellStory(clock, stories[0]);
  else if (cars.cvs.length) chooseDecided(clock, cars);
  preparePrinting(map);
  Object.assign(window, { report: { data, cars, clock, map } }); // for the console, and for tests
  return data;
}

/** Chooses the CV of a worst loss or closest call, shortly before its update was lost or received. */
function tellStory(clock, button) {
  clock.chosen = Number(button.dataset.cv);
  clock.set(Number(button.dataset.time) - 1);
}

/** Chooses the first CV about which the server decided something; nobody got an order. */
function chooseDecided(clock, cars) {
  const [cv, [decision]] = cars.decisions.entries().next().value ?? [cars.cvs[0], [{ at: 0 }]];
  clock.chosen = cv;
  clock.set(decision.at);
}

/** On paper everything is light, and the reasons of the losses are open. */
function preparePrinting(map) {
  const folds = [...document.querySelectorAll(".losses details")];
  let closed = [];
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    closed = folds.filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
    map.resize();
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    for (const fold of closed) fold.open = false;
    map.resize();
  });
}

/** The markers of the map and the marks of the timeline. */
function drawLegend(cars, map) {
  const item = (sign, words) => element("span", {}, sign, ` ${words}`);
  const markers = Object.entries(STATES).map(([name, state]) => item(markerOf(name), state.label));
  const sign = (mark) => shape("svg", { width: 10, height: 16, "aria-hidden": "true" }, mark);
  const deadline = sign(shape("line", { x1: 5, x2: 5, y1: 1, y2: 15, class: "deadline" }));
  const sojourn = sign(shape("circle", { cx: 5, cy: 8, r: 3, class: "sojourn" }));
  const width = { x1: 0, y1: 8, x2: 18, y2: 8, class: "beam", "stroke-width": 5 };
  const line = shape("svg", { width: 18, height: 16, "aria-hidden": "true" }, shape("line", width));
  const words = "share of the pRBs when served: width of the line to the gNB, and dark part of an upload below";
  const beam = cars.uploads.kind === "off" ? [] : [item(line, words)];
  const legend = document.getElementById("legend");
  legend.append(...markers, ...beam, item(deadline, "deadline"), item(sojourn, "end of the sojourn bound"));
  legend.append(downloads("Map", () => map.canvas, () => map.table(), () => legend));
}

start().then(
  () => document.documentElement.classList.add("ready"),
  (error) => {
    console.error(error);
    const words = `This page could not be drawn: ${error.message}`;
    document.querySelector("main").prepend(element("p", { class: "broken" }, words));
  },
);
