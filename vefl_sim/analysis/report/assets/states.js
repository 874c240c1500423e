"use strict";
// The states of a CV. Each has a form of its own as well as a colour, so that nobody needs to tell colours apart.

const CIRCLE = "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z";
const DOT = "M.5 0A.5 .5 0 1 1 -.5 0A.5 .5 0 1 1 .5 0Z";
const SQUARE = "M-.92 -.92H.92V.92H-.92Z";
const STATES = {
  outside: { label: "not in coverage", form: DOT, colour: "--faint", solid: true },
  idle: { label: "idle", form: CIRCLE, colour: "--muted" },
  ineligible: { label: "not eligible", form: "M-.8 -.8L.8 .8M-.8 .8L.8 -.8", colour: "--muted" },
  passed_over: { label: "passed over", form: "M0 -1.2L1.2 0L0 1.2L-1.2 0Z", colour: "--purple" },
  training: { label: "training", form: CIRCLE, half: "M0 -1A1 1 0 0 1 0 1Z", colour: "--sky" },
  waiting: { label: "waiting to send", form: SQUARE, mark: "M-.3 -.4V.4M.3 -.4V.4", colour: "--orange" },
  uploading: { label: "uploading", form: "M0 -1.25L1.2 .85H-1.2Z", colour: "--blue", solid: true },
  delivered: { label: "delivered", form: CIRCLE, mark: "M-.5 .05L-.12 .42L.5 -.36", colour: "--green", solid: true },
  lost: { label: "lost", form: SQUARE, mark: "M-.45 -.45L.45 .45M-.45 .45L.45 -.45", colour: "--red", solid: true },
};

/** How decisions end in charts: from the bottom of a stack to its top, each with a pattern of its own. */
const OUTCOMES = [
  { key: "delivered", label: "delivered", fill: "fill-delivered" },
  { key: "lost/coverage_left", label: "lost: left coverage", fill: "fill-left" },
  { key: "lost/trip_ended", label: "lost: trip ended", fill: "fill-trip" },
  { key: "lost/round_ended", label: "lost: round ended", fill: "fill-ended" },
  { key: "lost/training_unfinished", label: "lost: training unfinished", fill: "fill-unfinished" },
  { key: "lost/expired", label: "lost: order expired", fill: "fill-expired" },
  { key: "lost/other", label: "lost: other reasons", fill: "fill-left" },
  { key: "passed_over", label: "passed over", fill: "fill-passed" },
  { key: "ineligible", label: "not eligible", fill: "fill-ineligible" },
];

const paths = new Map();
const pathOf = (form) => paths.get(form) ?? paths.set(form, new Path2D(form)).get(form);

/** Draws the marker of a state on a canvas; `colours` maps the names of CSS variables to colours. */
function drawMarker(context, name, x, y, size, colours) {
  const state = STATES[name] ?? STATES.idle;
  context.save();
  context.translate(x, y);
  context.scale(size, size);
  context.lineJoin = context.lineCap = "round";
  context.strokeStyle = colours["--paper"];
  context.lineWidth = 4.5 / size;
  context.stroke(pathOf(state.form)); // a halo, so that markers on each other can be told apart
  context.fillStyle = state.solid ? colours[state.colour] : colours["--paper"];
  if (state.form.includes("Z")) context.fill(pathOf(state.form));
  context.strokeStyle = colours[state.colour];
  context.lineWidth = 1.8 / size;
  context.stroke(pathOf(state.form));
  if (state.half) {
    context.fillStyle = colours[state.colour];
    context.fill(pathOf(state.half));
  }
  if (state.mark) {
    context.strokeStyle = state.solid ? colours["--paper"] : colours[state.colour];
    context.stroke(pathOf(state.mark));
  }
  context.restore();
}

/** The same marker as an SVG, for texts and legends. */
function markerOf(name, size = 6) {
  const state = STATES[name] ?? STATES.idle;
  const thin = { "stroke-width": 1.8 / size, "stroke-linejoin": "round", "stroke-linecap": "round" };
  const colour = `var(${state.colour})`;
  const closed = state.form.includes("Z");
  const box = 2 * size + 4;
  const fill = closed && state.solid ? colour : "none";
  const parts = [shape("path", { d: state.form, fill, stroke: colour, ...thin })];
  if (state.half) parts.push(shape("path", { d: state.half, fill: colour }));
  if (state.mark) {
    parts.push(shape("path", { d: state.mark, fill: "none", stroke: state.solid ? "var(--paper)" : colour, ...thin }));
  }
  const group = shape("g", { transform: `translate(${box / 2} ${box / 2}) scale(${size})` }, ...parts);
  return shape("svg", { class: "marker", width: box, height: box, "aria-hidden": "true" }, group);
}

/** The patterns of the outcomes, once per page. */
function patterns() {
  const tile = (id, colour, ...marks) => {
    const back = shape("rect", { width: 6, height: 6, fill: `var(${colour})`, opacity: marks.length ? 0.2 : 1 });
    const attributes = { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" };
    const thin = { stroke: `var(${colour})`, "stroke-width": colour === "--red" ? 1.7 : 0.9, fill: "none" };
    const lines = marks.map((d) => shape("path", { d, ...thin }));
    return shape("pattern", attributes, back, ...lines);
  };
  const svg = shape("svg", { width: 0, height: 0, class: "patterns", "aria-hidden": "true" });
  svg.append(
    tile("fill-delivered", "--green"),
    tile("fill-left", "--red"),
    tile("fill-trip", "--red", "M0 1.5H6M0 4.5H6"),
    tile("fill-ended", "--red", "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"),
    tile("fill-unfinished", "--red", "M1.5 3H4.5M3 1.5V4.5"),
    tile("fill-expired", "--red", "M-1 -1L7 7M5 -1L7 1M-1 5L1 7"),
    tile("fill-passed", "--purple", "M0 3H6"),
    tile("fill-ineligible", "--muted", "M3 2.4V3.6"),
    tile("fill-training", "--sky"),
    tile("fill-waiting", "--orange", "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"),
    tile("fill-uploading", "--blue"),
  );
  document.body.append(svg);
}

/** A patch with the pattern of an outcome and its name, for legends. */
function patchOf(fill, words) {
  const patch = shape("rect", { width: 18, height: 12, rx: 2, fill: `url(#${fill})` });
  return element("span", {}, shape("svg", { width: 18, height: 12, "aria-hidden": "true" }, patch), ` ${words}`);
}

/** A legend of the outcomes that occur. */
function outcomeLegend(keys) {
  const items = OUTCOMES.filter((outcome) => keys.has(outcome.key)).map(({ fill, label }) => patchOf(fill, label));
  return element("div", { class: "legend" }, ...items);
}
