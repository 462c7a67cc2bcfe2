/* What is folded stays folded on paper, but what the reader opened: the theme opens all, which makes a page of a model
   139 sheets. Without scripts the browser prints what is open. */

import { all, onEveryPage } from "./dom.js";

/** Say of something folded whether the reader wants it, which the style of print asks for.
 * @param {HTMLDetailsElement} folded
 */
export function ask(folded) {
  if (folded.open) folded.dataset.asked = "";
  else delete folded.dataset.asked;
}

const foldedAround = (node) => (node instanceof Element ? node.closest("details") : null);

export function startPrinting() {
  document.addEventListener("click", (event) => {
    const folded = event.target instanceof Element && event.target.closest("summary") ? foldedAround(event.target) : null;
    if (folded) setTimeout(() => ask(folded)); // when it has opened or closed
  });
  onEveryPage(() => all("details[open]").forEach((folded) => folded instanceof HTMLDetailsElement && ask(folded)));
}
