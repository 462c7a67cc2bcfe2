/* What is folded stays folded on paper, but what the reader opened: the theme opens all, which makes a page of a model
   139 sheets. Without scripts the browser prints what is open. */

import { all, around, onEveryPage } from "./dom.js";

/** Say of something folded whether the reader wants it, which the style of print asks for.
 * @param {HTMLDetailsElement} folded
 */
export function ask(folded) {
  if (folded.open) folded.dataset.asked = "";
  else delete folded.dataset.asked;
}

export function startPrinting() {
  document.addEventListener("click", (event) => {
    const folded = around(event, "summary", HTMLElement)?.closest("details");
    if (folded) setTimeout(() => ask(folded)); // when it has opened or closed
  });
  onEveryPage(() => all("details[open]").forEach((folded) => folded instanceof HTMLDetailsElement && ask(folded)));
}
