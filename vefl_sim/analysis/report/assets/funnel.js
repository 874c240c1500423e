"use strict";
// From CVs in coverage to delivered updates: in the whole run, and by round.

/** The decisions of a round by the keys of OUTCOMES. */
function outcomesOf(data, row) {
  const counts = { ...data.decisions.states[row] };
  for (const [reason, count] of Object.entries(data.decisions.reasons[row])) {
    if (!reason.startsWith("lost/")) continue;
    const known = OUTCOMES.some((outcome) => outcome.key === reason) ? reason : "lost/other";
    counts[known] = (counts[known] ?? 0) + count;
  }
  return counts;
}

function drawFunnel(data, jump) {
  const byRound = data.rounds.round.map((_, row) => outcomesOf(data, row));
  const total = {};
  for (const counts of byRound) for (const [key, count] of Object.entries(counts)) total[key] = (total[key] ?? 0) + count;
  document.getElementById("funnel-total").append(funnelSteps(data, total));
  const holder = document.getElementById("funnel-rounds");
  const body = element("div");
  holder.append(outcomeLegend(new Set(Object.keys(total))), body);
  chart(body, (width) => stackedRounds(data, byRound, width, jump));
}

/** Four bars, each with what is left out on the way to the next. */
function funnelSteps(data, total) {
  const { rounds } = data;
  const [seen, eligible, ordered, delivered] = ["in_coverage", "eligible", "ordered", "delivered"].map((name) => sum(rounds[name]));
  const reasons = {};
  for (const counts of data.decisions.reasons) {
    for (const [key, count] of Object.entries(counts)) reasons[key] = (reasons[key] ?? 0) + count;
  }
  const because = (state) => Object.entries(reasons).filter(([key]) => key.startsWith(`${state}/`)).sort((a, b) => b[1] - a[1])
    .map(([key, count]) => `${whole.format(count)} × ${data.reasons[key.split("/")[1]] ?? key.split("/")[1]}`).join("; ");
  const most = Math.max(seen, ordered, 1);
  const steps = [
    ["in coverage", seen, ""],
    ["eligible", eligible, because("ineligible")],
    ["ordered", ordered, total.passed_over ? `${whole.format(total.passed_over)} passed over` : ""],
    ["delivered", delivered, because("lost")],
  ];
  const rows = steps.map(([label, count, left], n) => {
    const before = n ? steps[n - 1][1] : 0;
    const share = n && before >= count && before ? percent(count / before) : "";
    const width = `${(100 * count) / most}%`;
    const bar = shape("svg", { class: "bar", height: 18, width: "100%", "aria-hidden": "true" },
      shape("rect", { width, height: 18, rx: 2, class: n === 3 ? "good" : "step" }));
    return element("tr", {}, element("th", { scope: "row" }, label), element("td", { class: "count" }, whole.format(count)),
      element("td", { class: "share" }, share), element("td", { class: "bars" }, bar), element("td", { class: "left" }, left));
  });
  const unit = data.unit === "window" ? " (orders; a CV may have several in a window)" : "";
  return element("table", { class: "funnel", "aria-label": `CVs summed over all ${data.unit}s${unit}` }, element("tbody", {}, ...rows));
}

/** One column per round, or per several rounds where they would be too narrow. */
function stackedRounds(data, byRound, width, jump) {
  const height = 210;
  const [left, right, top, bottom] = [44, width - 12, 8, height - 24];
  const group = Math.max(1, Math.ceil((3 * byRound.length) / (right - left)));
  const columns = [];
  for (let row = 0; row < byRound.length; row += group) columns.push(byRound.slice(row, row + group));
  const mean = (rows, key) => sum(rows.map((counts) => counts[key])) / rows.length;
  const heights = columns.map((rows) => sum(OUTCOMES.map((outcome) => mean(rows, outcome.key))));
  const most = Math.max(...heights, 1);
  const y = scale([0, most], [bottom, top]);
  const step = (right - left) / columns.length;
  const svg = canvasOf(width, height, `Decisions by ${data.unit}, stacked by how they ended`);
  yAxis(svg, y, ticks(0, most, 4), left, right);
  columns.forEach((rows, n) => {
    const first = n * group;
    let level = 0;
    const bar = shape("g", { class: "column", onclick: () => jump(first) });
    const texts = [];
    for (const outcome of OUTCOMES) {
      const count = mean(rows, outcome.key);
      if (!count) continue;
      const gap = step > 6 ? 1 : 0;
      bar.append(shape("rect", { x: left + n * step, width: Math.max(step - gap, 0.5), y: y(level + count),
        height: y(level) - y(level + count), fill: `url(#${outcome.fill})` }));
      texts.push(`${group > 1 ? count.toFixed(1) : count} ${outcome.label}`);
      level += count;
    }
    const name = group > 1 ? `${data.unit}s ${first + 1} to ${first + rows.length}, on average` : `${data.unit} ${data.rounds.round[first]}`;
    bar.prepend(shape("title", {}, `${name}: ${texts.join(", ")}`), shape("rect", { x: left + n * step, width: step, y: top, height: bottom - top, fill: "transparent" }));
    svg.append(bar);
  });
  const number = (value) => left + ((value - data.rounds.round[0] + 0.5) / (columns.length * group)) * (right - left);
  const numbers = ticks(data.rounds.round[0], data.rounds.round.at(-1), width / 80).filter(Number.isInteger);
  xAxis(svg, number, numbers, bottom);
  if (group > 1) svg.append(shape("text", { x: right, y: top + 6, class: "tick end" }, `each column: mean of ${group} ${data.unit}s`));
  return svg;
}
