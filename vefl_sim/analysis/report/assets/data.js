"use strict";
// The data of the page, which are embedded as base64 of deflated JSON. Times are in ms of simulated time.

async function readData() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(unpacked).json();
  Object.setPrototypeOf(data.reasons, null); // a run may name a reason "constructor"
  return data;
}

/** Turns {name: [values], …} into an array of {name: value, …}. */
function rowsOf(columns) {
  const names = Object.keys(columns);
  const length = names.length ? columns[names[0]].length : 0;
  return Array.from({ length }, (_, row) => Object.fromEntries(names.map((name) => [name, columns[name][row]])));
}

/** The index of the last item whose key is at most `limit`, or -1; the items are sorted by key. */
function lastUpTo(items, limit, key = (item) => item) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(items[middle]) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
const seconds = (ms, digits = 1) => `${(ms / 1000).toFixed(digits)} s`;
const isNearEnd = (share) => (share > 0 && share < 0.1) || (share > 0.99 && share < 1);
const percent = (share) => `${(100 * share).toFixed(isNearEnd(share) ? 1 : 0)}%`;
const whole = new Intl.NumberFormat("en");
const digits3 = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const PREFIXES = [[1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]];

/** A number with about three digits, and its unit: 2.68 J, 1,018, 215 Mbit/J. */
function short(value, unit = "") {
  const [, factor, prefix] = PREFIXES.find(([least]) => Math.abs(value) >= least) ?? [0, 1, ""];
  const number = value / factor;
  const text = Math.abs(number) < 1000 ? digits3.format(number) : whole.format(Math.round(number));
  return `${text} ${prefix}${unit}`.trim();
}
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
