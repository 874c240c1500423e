"use strict";
// Terms of the glossary: where one is marked, its meaning is shown while the pointer or the focus is on it.

const meanings = new Map(); // by the words that stand for a term
let termPattern = null;

/** Learns the terms of the page, explains those in its texts, and listens to the pointer and the keyboard. */
function useTerms(terms) {
  for (const [name, meaning, words] of terms) for (const word of words) meanings.set(word, [name, meaning]);
  const longestFirst = [...meanings.keys()].sort((a, b) => b.length - a.length);
  termPattern = new RegExp(`(?<![\\p{L}\\p{N}_.-])(${longestFirst.join("|")})(?![\\p{L}\\p{N}_-])`, "u");
  document.body.append(termTip);
  const places = ".sentence, .lead, .warnings li, .tile, .funnel, .legend, .curve p, .losses details > div, .pairs";
  document.querySelectorAll(places).forEach(explain);
  const termAt = (event) => event.target.closest?.(".term");
  const leaves = (event) => {
    const next = event.relatedTarget;
    if (!next || !(termTip.contains(next) || next === termTip.term)) hideTerm();
  };
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => termAt(event) && showTerm(termAt(event)));
  }
  for (const kind of ["pointerout", "focusout"]) {
    document.addEventListener(kind, (event) => (termAt(event) || event.target === termTip) && leaves(event));
  }
  addEventListener("scroll", hideTerm, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || termTip.hidden) return;
    hideTerm();
    event.stopPropagation(); // and the chosen CV stays chosen
  }, { capture: true });
}

/** Marks each term once where it first occurs in the texts of a node. */
function explain(node) {
  const seen = new Set();
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    if (text.parentElement.closest("button, select, summary, svg, dd, .term")) continue;
    const parts = text.data.split(termPattern); // every second one is a term
    const nodes = parts.map((part, n) => (n % 2 && isFirst(part, seen) ? marked(part) : part));
    if (nodes.length > 1) text.replaceWith(...nodes);
  }
}

function isFirst(word, seen) {
  const [name] = meanings.get(word);
  return !seen.has(name) && Boolean(seen.add(name));
}

const marked = (word) => element("span", { class: "term", tabindex: 0 }, word);
const termTip = element("div", { class: "term-tip", role: "tooltip", id: "term-tip" });
termTip.hidden = true;

/** Shows the meaning of a term below it, or above it where there is no room; nothing else moves. */
function showTerm(term) {
  hideTerm();
  const [name, meaning] = meanings.get(term.textContent);
  termTip.replaceChildren(element("b", {}, name), `: ${meaning}`);
  termTip.hidden = false;
  termTip.term = term;
  term.setAttribute("aria-describedby", termTip.id);
  const [word, tip] = [term.getClientRects()[0], termTip.getBoundingClientRect()];
  const below = word.bottom + tip.height < innerHeight;
  termTip.style.left = `${Math.max(Math.min(word.left, document.documentElement.clientWidth - tip.width - 8), 8)}px`;
  termTip.style.top = `${below ? word.bottom : word.top - tip.height}px`;
}

function hideTerm() {
  termTip.hidden = true;
  termTip.term?.removeAttribute("aria-describedby");
  termTip.term = null;
}
