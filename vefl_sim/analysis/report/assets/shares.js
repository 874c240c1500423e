"use strict";
// Participation by data size and distance as stacked bars, and the confusion matrix.

function drawShares(data) {
  const fillOf = (state) => (state === "lost" ? "fill-ended" : OUTCOMES.find((outcome) => outcome.key === state).fill);
  const parts = data.states.map((state) => ({ label: STATES[state].label, fill: fillOf(state) }));
  for (const [name, unit] of [["samples", ""], ["distance", " m"]]) {
    const bins = data.shares[name];
    const seen = parts.filter((_, n) => bins.some((bin) => bin.counts[n]));
    const legend = element("div", { class: "legend" }, ...seen.map(({ fill, label }) => patchOf(fill, label)));
    const body = element("div");
    document.getElementById(`shares-${name}`).append(body, legend);
    chart(body, (width) => stackedShares(bins, unit, parts, width));
  }
}

/** A bar per bin: the shares of the outcomes, and how many decisions there were. */
function stackedShares(bins, unit, parts, width) {
  const [left, right, line] = [92, width - 56, 24];
  const svg = canvasOf(width, bins.length * line + 4, "Shares of outcomes");
  bins.forEach((bin, n) => {
    const total = sum(bin.counts);
    const x = scale([0, total], [left, right]);
    const label = `${whole.format(Math.round(bin.from))}–${whole.format(Math.round(bin.to))}${unit}`;
    const title = `${label}: ${parts.map((part, k) => `${bin.counts[k]} ${part.label}`).join(", ")}`;
    let level = 0;
    const bars = parts.map(({ fill }, k) => {
      const [from, to] = [x(level), x((level += bin.counts[k]))];
      return shape("rect", { x: from, y: n * line + 2, width: to - from, height: line - 6, fill: `url(#${fill})` });
    });
    const y = n * line + 16;
    const name = shape("text", { x: left - 8, y, class: "tick end" }, label);
    const number = shape("text", { x: right + 8, y, class: "tick" }, whole.format(total));
    svg.append(shape("g", {}, shape("title", {}, title), name, ...bars, number));
  });
  return svg;
}

function drawConfusion(data) {
  if (!data.confusion) return;
  const { counts, classes } = data.confusion;
  chart(document.getElementById("confusion"), (width) => confusionMatrix(counts, classes, width));
}

/** A cell per pair of classes, as strong as its share of the true class, and a bar with the accuracy of each class. */
function confusionMatrix(counts, classes, width) {
  const longest = Math.max(...classes.map((name) => name.length));
  const left = Math.min(20 + 6.5 * longest, 0.3 * width);
  const bars = Math.min(0.25 * width, 240);
  const cell = Math.max(Math.min((width - left - bars) / counts.length, 34), 4);
  const every = Math.max(1, Math.ceil(13 / cell)); // classes between two names
  const top = 24;
  const svg = canvasOf(width, top + counts.length * cell + 8, "Confusion matrix");
  counts.forEach((row, truth) => {
    const y = top + truth * cell;
    row.forEach((count, guess) => {
      const title = `${classes[truth]} taken for ${classes[guess]}: ${count} of ${sum(row)}`;
      const colour = truth === guess ? "--green" : "--red";
      svg.append(confusionCell(count, sum(row), title, colour, { x: left + guess * cell, y, size: cell }));
    });
    if (truth % every === 0) {
      const number = classes[truth].length * 7 < cell * every ? classes[truth] : `${truth}`;
      svg.append(shape("text", { x: left - 6, y: y + cell / 2 + 4, class: "tick end" }, classes[truth]));
      svg.append(shape("text", { x: left + (truth + 0.5) * cell, y: top - 6, class: "tick middle" }, number));
    }
    const accuracy = sum(row) ? row[truth] / sum(row) : 0;
    const [from, length] = [left + counts.length * cell + 12, accuracy * (bars - 64)];
    svg.append(shape("rect", { x: from, y: y + 1, width: length, height: Math.max(cell - 3, 1), class: "good" }));
    if (truth % every === 0) {
      const words = sum(row) ? percent(accuracy) : "–";
      svg.append(shape("text", { x: from + length + 6, y: y + cell / 2 + 4, class: "tick" }, words));
    }
  });
  return svg;
}

function confusionCell(count, total, title, colour, { x, y, size }) {
  const share = total ? count / total : 0;
  const strength = count ? 0.12 + 0.88 * share : 0.04;
  const box = { x, y, width: size - 1, height: size - 1, fill: `var(${colour})`, "fill-opacity": strength };
  const text = { x: x + size / 2, y: y + size / 2 + 4, class: `tick middle${share > 0.5 ? " inverse" : ""}` };
  const number = count && size >= 24 ? [shape("text", text, `${count}`)] : [];
  return shape("g", {}, shape("title", {}, title), shape("rect", box), ...number);
}
