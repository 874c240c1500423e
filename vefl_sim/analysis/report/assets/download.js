"use strict";
// Buttons that save a chart as a picture and its numbers as a table. Both are made by the page; nothing is requested.

const PICTURE_SCALE = 2; // pixels of a saved picture per pixel on the screen
const LOOK = [
  ...["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap"],
  ...["opacity", "visibility", "font-family", "font-size", "font-weight", "text-anchor"],
];

/**
 * The two buttons of a chart. `drawing()` returns its SVG or canvas, `legend()` the HTML of its legend or null, and
 * `rows()` its numbers as an array of rows, of which the first has the names of the columns.
 */
function downloads(title, drawing, rows, legend = () => null) {
  const button = (kind, make) => {
    const save = async () => saveAs(fileName(title, kind), await make());
    return element("button", { type: "button", "aria-label": `Save “${title}” as ${kind}`, onclick: save }, kind);
  };
  const png = button("PNG", () => pictureOf(title, drawing(), legend()));
  return element("span", { class: "downloads" }, png, button("CSV", () => csvOf(rows())));
}

const plainName = (words) => words.replaceAll(/[^\p{L}\p{N}_.]+/gu, "-");
const fileName = (title, kind) => `${plainName(`${runName()} ${title}`)}.${kind.toLowerCase()}`;
const runName = () => document.title.replace(/: vefl_sim$/, "");

function saveAs(name, blob) {
  const url = URL.createObjectURL(blob);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Rows as CSV; a text that a spreadsheet would take for a formula becomes a text there as well. */
function csvOf(rows) {
  const cell = (value) => {
    if (typeof value === "number") return `${value}`;
    const text = `${value ?? ""}`.replace(/^(?=[=+\-@\t\r])/, "'");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")], { type: "text/csv" });
}

/** A PNG with the title, the legend and the chart, in the colours of the page. */
async function pictureOf(title, drawing, legend) {
  const box = drawing.getBoundingClientRect();
  const [head, margin, gap] = [30, 16, legend ? 10 : 0];
  const legendHeight = legend ? legend.getBoundingClientRect().height : 0;
  const canvas = element("canvas");
  canvas.width = PICTURE_SCALE * (box.width + 2 * margin);
  canvas.height = PICTURE_SCALE * (head + legendHeight + gap + box.height + 2 * margin);
  const context = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  context.scale(PICTURE_SCALE, PICTURE_SCALE);
  context.fillStyle = style.getPropertyValue("--paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = style.getPropertyValue("--ink");
  context.font = "600 15px system-ui, sans-serif";
  context.fillText(title, margin, margin + 14, box.width);
  if (legend) context.drawImage(await imageOf(legendDrawing(legend)), margin, margin + head);
  const source = drawing instanceof HTMLCanvasElement ? drawing : await imageOf(standalone(drawing));
  context.drawImage(source, margin, margin + head + legendHeight + gap, box.width, box.height);
  return new Promise((done) => canvas.toBlob(done));
}

async function imageOf(svg) {
  const url = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = url;
  await image.decode();
  URL.revokeObjectURL(url);
  return image;
}

/** A copy of an SVG that needs no style sheet: what it looks like is in its attributes. */
function standalone(svg) {
  const copy = plain(svg);
  copy.prepend(shape("defs", {}, ...[...document.querySelectorAll(".patterns pattern")].map(plain)));
  return copy;
}

function plain(node) {
  const copy = node.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [node, ...node.querySelectorAll("*")].forEach((one, n) => {
    const style = getComputedStyle(one);
    for (const name of LOOK) copies[n].setAttribute(name, style.getPropertyValue(name));
    copies[n].removeAttribute("class");
  });
  return copy;
}

/** The signs and words of a legend as an SVG, in the places that they have on the page. */
function legendDrawing(legend) {
  const box = legend.getBoundingClientRect();
  const svg = shape("svg", { width: box.width, height: box.height });
  for (const item of legend.querySelectorAll(":scope > span:has(> svg)")) {
    const [sign, place] = [item.querySelector("svg"), item.getBoundingClientRect()];
    const at = sign.getBoundingClientRect();
    const [x, middle] = [place.left - box.left, (place.top + place.bottom) / 2 - box.top];
    const copy = standalone(sign);
    copy.setAttribute("x", x);
    copy.setAttribute("y", middle - at.height / 2);
    const { color: fill, fontSize } = getComputedStyle(item);
    const look = { fill, "font-size": fontSize, "font-family": "system-ui, sans-serif" };
    const text = { x: x + at.width + 6, y: middle + 5, ...look };
    svg.append(copy, shape("text", text, item.textContent.trim()));
  }
  return svg;
}
