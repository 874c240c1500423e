"use strict";
// The confusion matrix of the last evaluation, with the accuracy of each class.

const LETTER = 6.4; // pixels of a letter in a chart, about

function drawConfusion(data) {
  if (!data.confusion) return;
  const { counts, classes } = data.confusion;
  const holder = document.getElementById("confusion");
  const table = () => [["true class", ...classes], ...counts.map((row, truth) => [classes[truth], ...row])];
  const saving = downloads("Confusion matrix", () => holder.querySelector("svg[role=img]"), table);
  holder.append(element("div", { class: "beside" }, saving));
  readableChart(holder, (width) => confusionMatrix(counts, classes, width), counts.length);
}

/** A cell per pair of classes, as strong as its share of the true class, and a bar with the accuracy of each class. */
function confusionMatrix(counts, classes, width) {
  const [narrow, longest] = [width < 560, Math.max(...classes.map((name) => name.length))];
  const left = Math.min(Math.max(14 + LETTER * longest, 62), 0.3 * width);
  const named = classes.map((name) => shortened(name, Math.floor((left - 10) / LETTER)));
  const bars = narrow ? 44 : 240;
  const cell = Math.max(Math.min((width - left - bars) / counts.length, 34), 1);
  const every = Math.max(1, Math.ceil(12.5 / cell)); // classes between two names
  const tilted = longest * LETTER > cell * every;
  const top = tilted ? 18 + 0.87 * LETTER * Math.max(...named.map((name) => name.length)) : 34;
  const end = left + counts.length * cell;
  const svg = canvasOf(width, top + counts.length * cell + 4, "Confusion matrix; arrow keys read it cell by cell");
  const note = (x, y, words, side) => svg.append(shape("text", { x, y, class: `tick ${side}` }, words));
  note(left - 6, top - 19, "predicted →", "end");
  note(left - 6, top - 5, "true ↓", "end");
  note(narrow ? width : end + 12, top - 6, narrow ? "acc." : "accuracy", narrow ? "end" : "");
  counts.forEach((row, truth) => {
    const [y, total] = [top + truth * cell, sum(row)];
    row.forEach((count, guess) => {
      const title = `${classes[truth]} taken for ${classes[guess]}: ${count} of ${total}`;
      const colour = truth === guess ? "--green" : "--red";
      svg.append(confusionCell(count, total, title, colour, { x: left + guess * cell, y, size: cell }));
    });
    const accuracy = total ? row[truth] / total : 0;
    const bar = narrow ? 0 : accuracy * (bars - 64);
    svg.append(shape("rect", { x: end + 12, y: y + 1, width: bar, height: Math.max(cell - 3, 1), class: "good" }));
    if (truth % every) return;
    note(left - 6, y + cell / 2 + 4, named[truth], "end");
    note(narrow ? width : end + 18 + bar, y + cell / 2 + 4, total ? percent(accuracy) : "–", narrow ? "end" : "");
    const at = { x: left + (truth + 0.5) * cell + (tilted ? 4 : 0), y: top - 6 };
    const angle = cell < 18 ? -90 : -60;
    const turn = tilted ? { transform: `rotate(${angle} ${at.x} ${at.y})`, class: "tick" } : { class: "tick middle" };
    svg.append(shape("text", { ...at, ...turn }, named[truth]));
  });
  return svg;
}

const shortened = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

/** A cell; with a number in it, it is pale enough for that to be read. */
function confusionCell(count, total, title, colour, { x, y, size }) {
  const strongest = size < 24 ? 1 : 0.5;
  const strength = count ? 0.1 + ((strongest - 0.1) * count) / total : 0.03;
  const gap = size > 4 ? 1 : 0;
  const box = { x, y, width: size - gap, height: size - gap, fill: `var(${colour})`, "fill-opacity": strength };
  const text = { x: x + size / 2, y: y + size / 2 + 4, class: "tick middle count" };
  const number = count && strongest < 1 ? [shape("text", text, `${count}`)] : [];
  return shape("g", {}, shape("title", {}, title), shape("rect", box), ...number);
}
