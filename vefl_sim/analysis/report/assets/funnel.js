"use strict";
// From CVs in coverage to delivered updates: in the whole run, and by round.

/** The sum of dictionaries of counts. */
function added(dictionaries) {
  const total = {};
  for (const counts of dictionaries) {
    for (const [key, count] of Object.entries(counts)) total[key] = (total[key] ?? 0) + count;
  }
  return total;
}

/** The decisions of a round by the keys of OUTCOMES. */
function outcomesOf(data, row) {
  const known = (reason) => (OUTCOMES.some((outcome) => outcome.key === reason) ? reason : "lost/other");
  const lost = Object.entries(data.decisions.reasons[row]).filter(([reason]) => reason.startsWith("lost/"));
  return added([data.decisions.states[row], ...lost.map(([reason, count]) => ({ [known(reason)]: count }))]);
}

function drawFunnel(data, jump) {
  const byRound = data.rounds.round.map((_, row) => outcomesOf(data, row));
  const total = added(byRound);
  document.getElementById("funnel-total").append(funnelSteps(data, total));
  const holder = document.getElementById("funnel-rounds");
  const legend = outcomeLegend(new Set(Object.keys(total)));
  const drawing = () => holder.querySelector("svg[role=img]");
  legend.append(downloads(`Decisions by ${data.unit}`, drawing, () => funnelTable(data, byRound), () => legend));
  holder.append(legend);
  readableChart(holder, (width) => stackedRounds(data, byRound, width, jump));
}

/** The numbers of all rounds, for a CSV file. */
function funnelTable(data, byRound) {
  const counts = ["in_coverage", "eligible", "ordered", "delivered"];
  const others = OUTCOMES.filter(({ key }) => key !== "delivered" && byRound.some((round) => round[key]));
  const rows = byRound.map((outcomes, row) => [
    ...[data.rounds.round[row], ...counts.map((name) => data.rounds[name][row])],
    ...others.map(({ key }) => outcomes[key] ?? 0),
  ]);
  return [[data.unit, ...counts, ...others.map(({ label }) => label)], ...rows];
}

/** Four bars, each with what was left out on the way to it. */
function funnelSteps(data, total) {
  const count = (name) => sum(data.rounds[name]);
  const steps = [
    ["in coverage", count("in_coverage"), ""],
    ["eligible", count("eligible"), reasonsIn(data, "ineligible")],
    ["ordered", count("ordered"), total.passed_over ? `${whole.format(total.passed_over)} passed over` : ""],
    ["delivered", count("delivered"), reasonsIn(data, "lost")],
  ];
  const most = Math.max(...steps.map(([, number]) => number), 1);
  const rows = steps.map(([label, number, left], n) => {
    const before = n ? steps[n - 1][1] : 0;
    const share = before && before >= number ? percent(number / before) : "";
    const width = `${(100 * Math.max(number, 0)) / most}%`;
    const rect = shape("rect", { width, height: 18, rx: 2, class: n === 3 ? "good" : "step" });
    const bar = shape("svg", { class: "bar", height: 18, width: "100%", "aria-hidden": "true" }, rect);
    const cells = [["count", whole.format(number)], ["share", share], ["bars", bar], ["left", left]];
    const heading = element("th", { scope: "row" }, label);
    return element("tr", {}, heading, ...cells.map(([name, content]) => element("td", { class: name }, content)));
  });
  const label = `CVs in coverage, eligible, ordered and delivered, summed over all ${data.unit}s`;
  return element("table", { class: "funnel", "aria-label": label }, element("tbody", {}, ...rows));
}

/** Why CVs were ineligible or updates lost, the most frequent reason first. */
function reasonsIn(data, state) {
  const counts = Object.entries(added(data.decisions.reasons)).filter(([key]) => key.startsWith(`${state}/`));
  const words = (key) => data.reasons[key.slice(state.length + 1)] ?? key.slice(state.length + 1);
  counts.sort((a, b) => b[1] - a[1]);
  return counts.map(([key, count]) => `${whole.format(count)} × ${words(key)}`).join("; ");
}

/** One column per round, or per several rounds where they would be too narrow. */
function stackedRounds(data, byRound, width, jump) {
  const height = 210;
  const [left, right, top, bottom] = [44, width - 12, 8, height - 24];
  const group = Math.max(1, Math.ceil((3 * byRound.length) / (right - left)));
  const starts = byRound.map((_, row) => row).filter((row) => row % group === 0);
  const means = starts.map((row) => {
    const rows = byRound.slice(row, row + group);
    return OUTCOMES.map((outcome) => sum(rows.map((counts) => counts[outcome.key])) / rows.length);
  });
  const most = Math.max(...means.map(sum), 1);
  const y = scale([0, most], [bottom, top]);
  const step = (right - left) / starts.length;
  const svg = canvasOf(width, height, `Decisions by ${data.unit}, stacked by how they ended`);
  yAxis(svg, y, ticks(0, most, 4), left, right);
  starts.forEach((row, n) => {
    const box = { x: left + n * step, width: Math.max(step - (step > 6 ? 1 : 0), 0.5) };
    const column = shape("g", { class: "column", onclick: () => jump(row) });
    const last = Math.min(row + group, byRound.length) - 1;
    column.append(shape("title", {}, columnTitle(data, row, last, means[n])));
    column.append(shape("rect", { ...box, y: top, height: bottom - top, fill: "transparent" })); // can be clicked
    column.append(...stack(means[n], box, y));
    svg.append(column);
  });
  const [first, last] = [data.rounds.round[0], data.rounds.round.at(-1)];
  const middle = (round) => left + ((round - first + 0.5) / group) * step;
  xAxis(svg, middle, ticks(first, last, width / 80).filter(Number.isInteger), bottom);
  if (group > 1) {
    const words = `each column: mean of ${group} ${data.unit}s`;
    svg.append(shape("text", { x: right, y: top + 6, class: "tick end" }, words));
  }
  return svg;
}

/** The rectangles of a column. */
function stack(counts, box, y) {
  let level = 0;
  return counts.map((count, n) => {
    const [low, high] = [y(level), y((level += count))];
    return shape("rect", { ...box, y: high, height: low - high, fill: `url(#${OUTCOMES[n].fill})` });
  });
}

function columnTitle(data, row, last, counts) {
  const [from, to] = [data.rounds.round[row], data.rounds.round[last]];
  const name = from === to ? `${data.unit} ${from}` : `${data.unit}s ${from} to ${to}, on average`;
  const parts = OUTCOMES.map((outcome, n) => [counts[n], outcome.label]).filter(([count]) => count);
  return `${name}: ${parts.map(([count, label]) => `${short(count)} ${label}`).join(", ")}`;
}
