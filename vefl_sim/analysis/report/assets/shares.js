"use strict";
// Participation by data size and distance as stacked bars.

function drawShares(data) {
  const fillOf = (state) => (state === "lost" ? "fill-ended" : OUTCOMES.find((outcome) => outcome.key === state).fill);
  const parts = data.states.map((state) => ({ label: STATES[state].label, fill: fillOf(state) }));
  for (const [name, unit] of [["samples", ""], ["distance", " m"]]) {
    const bins = data.shares[name];
    const seen = parts.filter((_, n) => bins.some((bin) => bin.counts[n]));
    const legend = element("div", { class: "legend" }, ...seen.map(({ fill, label }) => patchOf(fill, label)));
    const holder = document.getElementById(`shares-${name}`);
    const title = `Participation by ${name === "samples" ? "data size" : "distance"}`;
    const drawing = () => holder.querySelector("svg[role=img]");
    legend.append(downloads(title, drawing, () => sharesTable(bins, parts), () => legend));
    holder.append(legend);
    readableChart(holder, (width) => stackedShares(bins, unit, parts, width));
  }
}

/** The numbers of the bins, for a CSV file. */
function sharesTable(bins, parts) {
  const rows = bins.map(({ from, to, counts }) => [from, to, ...counts]);
  return [["from", "to", ...parts.map(({ label }) => label)], ...rows];
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
