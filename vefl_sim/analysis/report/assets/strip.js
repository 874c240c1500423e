"use strict";
// A strip under the slider with a mark per round: those with losses stand out, and a click jumps to the round.

function drawStrip(data, clock) {
  const { rounds } = data;
  const strip = document.getElementById("strip");
  chart(strip, (width) => {
    const [margin, height] = [8, 14]; // half of the slider's thumb
    const x = scale([0, data.end], [margin, width - margin]);
    const svg = canvasOf(width, height, `Lost updates by ${data.unit}`);
    const lost = rounds.round.map((_, row) => Math.max(rounds.ordered[row] - rounds.delivered[row], 0));
    const most = Math.max(...lost, 1);
    rounds.round.forEach((number, row) => {
      const [from, to] = [x(rounds.start[row]), x(rounds.end[row])];
      const tall = lost[row] ? 5 + (9 * lost[row]) / most : 2;
      const gap = to - from > 4 ? 1 : 0;
      const bar = { x: from, width: Math.max(to - from - gap, 0.6), y: height - tall, height: tall };
      const title = shape("title", {}, `${data.unit} ${number}: ${lost[row]} of ${rounds.ordered[row]} updates lost`);
      const target = shape("rect", { x: from, width: to - from, y: 0, height, fill: "transparent" });
      const jump = { class: "column", onclick: () => clock.set(rounds.start[row]) };
      svg.append(shape("g", jump, title, target, shape("rect", { ...bar, class: lost[row] ? "bad" : "step" })));
    });
    return svg;
  });
}
