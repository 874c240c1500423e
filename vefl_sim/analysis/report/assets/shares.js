"use strict";
// Participation by data size and distance as stacked bars, and the confusion matrix.

function drawShares(data) {
  for (const [name, unit] of [["samples", ""], ["distance", " m"]]) {
    const bins = data.shares[name];
    const holder = document.getElementById(`shares-${name}`);
    const body = element("div");
    const fills = data.states.map((state) => (state === "lost" ? "fill-ended" : OUTCOMES.find((outcome) => outcome.key === state).fill));
    const seen = (n) => bins.some((bin) => bin.counts[n]);
    const keys = data.states.map((state, n) => seen(n) && element("span", {}, shape("svg", { width: 18, height: 12, "aria-hidden": "true" },
      shape("rect", { width: 18, height: 12, rx: 2, fill: `url(#${fills[n]})` })), ` ${STATES[state].label}`));
    holder.append(body, element("div", { class: "legend" }, ...keys.filter(Boolean)));
    chart(body, (width) => stackedShares(bins, unit, fills, data.states, width));
  }
}

/** A bar per bin: the shares of the outcomes, and how many decisions there were. */
function stackedShares(bins, unit, fills, states, width) {
  const [left, right, line] = [92, width - 56, 24];
  const svg = canvasOf(width, bins.length * line + 4, "Shares of outcomes");
  bins.forEach((bin, n) => {
    const total = sum(bin.counts);
    const x = scale([0, total], [left, right]);
    const label = `${whole.format(Math.round(bin.from))}–${whole.format(Math.round(bin.to))}${unit}`;
    let level = 0;
    const row = shape("g", {}, shape("title", {}, `${label}: ${states.map((state, k) => `${bin.counts[k]} ${STATES[state].label}`).join(", ")}`));
    row.append(shape("text", { x: left - 8, y: n * line + 16, class: "tick end" }, label));
    bin.counts.forEach((count, k) => {
      row.append(shape("rect", { x: x(level), y: n * line + 2, width: Math.max(x(level + count) - x(level), 0), height: line - 6, fill: `url(#${fills[k]})` }));
      level += count;
    });
    row.append(shape("text", { x: right + 8, y: n * line + 16, class: "tick" }, whole.format(total)));
    svg.append(row);
  });
  return svg;
}

function drawConfusion(data) {
  if (!data.confusion) return;
  const { counts, classes } = data.confusion;
  chart(document.getElementById("confusion"), (width) => confusionMatrix(counts, classes, width));
}

function confusionMatrix(counts, classes, width) {
  const size = counts.length;
  const [left, top, bars] = [Math.min(40 + 6 * Math.max(...classes.map((name) => name.length)), 0.3 * width), 24, 120];
  const cell = Math.max(Math.min((width - left - bars) / size, 34), 4);
  const svg = canvasOf(width, top + size * cell + 8, "Confusion matrix");
  const every = Math.max(1, Math.ceil(13 / cell));
  counts.forEach((row, truth) => {
    const total = sum(row);
    const y = top + truth * cell;
    if (truth % every === 0) {
      svg.append(shape("text", { x: left - 6, y: y + cell / 2 + 4, class: "tick end" }, classes[truth]),
        shape("text", { x: left + (truth + 0.5) * cell, y: top - 6, class: "tick middle" }, classes[truth].length * 6 < cell * every ? classes[truth] : `${truth}`));
    }
    row.forEach((count, guess) => {
      const share = total ? count / total : 0;
      const colour = truth === guess ? "--green" : "--red";
      const box = shape("rect", { x: left + guess * cell, y, width: cell - 1, height: cell - 1, fill: `var(${colour})`, "fill-opacity": count ? 0.12 + 0.88 * share : 0.04 });
      svg.append(filled(box, {}, [shape("title", {}, `${classes[truth]} taken for ${classes[guess]}: ${count} of ${total}`)]));
      if (count && cell >= 24) svg.append(shape("text", { x: left + (guess + 0.5) * cell, y: y + cell / 2 + 4, class: `tick middle${share > 0.5 ? " inverse" : ""}` }, `${count}`));
    });
    const accuracy = total ? row[truth] / total : 0;
    const from = left + size * cell + 12;
    svg.append(shape("rect", { x: from, y: y + 1, width: accuracy * (bars - 60), height: Math.max(cell - 3, 1), fill: "url(#fill-delivered)" }));
    if (truth % every === 0) svg.append(shape("text", { x: from + accuracy * (bars - 60) + 5, y: y + cell / 2 + 4, class: "tick" }, total ? percent(accuracy) : "–"));
  });
  return svg;
}
