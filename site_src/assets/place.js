/* Keeps what the address names in view while figures and tables above it still take their size. It ends with the
   reader's first own move, or after a few seconds. Without it the browser jumps once, to where the place was then. */

import { named, onEveryPage } from "./dom.js";

const PATIENCE = 6000; // milliseconds
const OWN_MOVES = ["wheel", "touchstart", "pointerdown", "keydown"];
let leave = () => {};

function keepInView() {
  leave();
  const place = named();
  if (!place) return;
  const growing = new ResizeObserver(() => place.scrollIntoView({ behavior: "instant" }));
  const timer = setTimeout(() => leave(), PATIENCE);
  leave = () => {
    growing.disconnect();
    clearTimeout(timer);
    for (const move of OWN_MOVES) removeEventListener(move, leave);
  };
  for (const move of OWN_MOVES) addEventListener(move, leave, { passive: true });
  growing.observe(place.closest("article") ?? document.body);
}

export function startKeepingPlace() {
  addEventListener("hashchange", keepInView);
  onEveryPage(keepInView);
}
