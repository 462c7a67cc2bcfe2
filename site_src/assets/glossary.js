/* What a word means, beside the word: when it is pointed at or reached with the keyboard. Without this script, and by a
   touch, the word leads to the glossary. */

import { around, element } from "./dom.js";

const ID = "glossary-tip";
let shown = null;

function hide() {
  shown?.removeAttribute("aria-describedby");
  document.getElementById(ID)?.remove();
  shown = null;
}

function show(word) {
  if (word === shown) return;
  hide();
  shown = word;
  const tip = element("div", { id: ID, className: "glossary-tip", textContent: word.dataset.says });
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  word.setAttribute("aria-describedby", ID);
  const [at, size] = [word.getBoundingClientRect(), tip.getBoundingClientRect()];
  const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - size.width - 8));
  const above = at.top > size.height + 70; // the header stays in view
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${scrollY + (above ? at.top - size.height - 6 : at.bottom + 6)}px`;
  tip.addEventListener("pointerleave", hide);
}

const word = (event) => around(event, "a.term", HTMLElement);
/** Explain words where they stand. */
export function startGlossary() {
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const over = word(event);
    if (over) show(over);
    else if (shown && !around(event, `#${ID}`, HTMLElement) && document.activeElement !== shown) hide();
  });
  document.addEventListener("focusin", (event) => (word(event) ? show(word(event)) : hide()));
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
