"use strict";
// Small helpers to build HTML and SVG; texts only ever become text nodes, never markup.

/** An HTML element; `attributes` may hold event listeners (onclick, …). */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Maps numbers from the interval `domain` to the interval `range`. */
function scale([from, to], [start, end]) {
  const factor = to === from ? 0 : (end - start) / (to - from);
  return (value) => start + (value - from) * factor;
}

/** Round numbers between two values, about `count` of them. */
function ticks(low, high, count) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, n) => (first + n) * step);
}

/** Draws a chart now and whenever the width of its container changes; `draw(width)` returns an SVG. */
function chart(container, draw) {
  let drawn = 0;
  const render = (width) => {
    drawn = width;
    container.replaceChildren(draw(width));
  };
  const watcher = new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width && width !== drawn) render(width);
  });
  watcher.observe(container);
  const redraw = () => render(Math.round(container.clientWidth) || 640);
  redraw();
  return redraw;
}

/** A chart with a line below it, in which the arrow keys, the pointer or a finger read the titles of its groups. */
function readableChart(container, draw, columns = 1) {
  const [body, line] = [element("div"), element("p", { class: "reading-line quiet", "aria-live": "polite" })];
  container.append(body, line);
  chart(body, (width) => readable(draw(width), line, columns));
}

function readable(svg, line, columns) {
  const groups = [...svg.children].filter((child) => child.firstChild?.tagName === "title");
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  let place = -1;
  const read = (next) => {
    groups[place]?.classList.remove("read");
    place = next;
    groups[place]?.classList.add("read");
    line.textContent = groups[place]?.firstChild.textContent ?? "";
  };
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("blur", () => read(-1));
  svg.addEventListener("pointerover", (event) => {
    const group = groups.findIndex((one) => one.contains(event.target));
    if (group >= 0) read(group);
  });
  svg.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (step) read(Math.min(Math.max(place < 0 ? 0 : place + step, 0), groups.length - 1));
    else if (event.key === "Enter") groups[place]?.dispatchEvent(new MouseEvent("click"));
    else return;
    event.preventDefault();
  });
  return svg;
}

/** An SVG as wide as its container. */
function canvasOf(width, height, label) {
  return shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

/** Horizontal grid lines with their numbers on the left. */
function yAxis(svg, y, values, left, right, format = (value) => short(value)) {
  for (const value of values) {
    svg.append(
      shape("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }),
      shape("text", { x: left - 6, y: y(value) + 4, class: "tick end" }, format(value)),
    );
  }
}

/** Numbers along the bottom. */
function xAxis(svg, x, values, bottom, format = (value) => short(value)) {
  for (const value of values) {
    svg.append(shape("text", { x: x(value), y: bottom + 16, class: "tick middle" }, format(value)));
  }
}
