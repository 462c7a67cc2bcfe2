/* What figures are worked with: choices, keys, and what screen readers hear of them. */

import { element } from "./dom.js";

/** Return a labelled list of names, and the list; a choice is given by its place.
 * @param {string} label
 * @param {string[]} names
 * @param {(place: number) => void} onchange
 * @returns {[HTMLLabelElement, HTMLSelectElement]}
 */
export function choice(label, names, onchange) {
  const select = element("select", { onchange: () => onchange(Number(select.value)) });
  names.forEach((name, i) => select.append(element("option", { value: i, textContent: name })));
  return [element("label", {}, `${label} `, select), select];
}

/** Return a place for what a figure says; screen readers say it, too. */
export function spoken() {
  const output = element("output", { className: "found" });
  output.setAttribute("aria-live", "polite");
  return output;
}

/** Let keys act on a plot, each with its arguments; with Ctrl, Alt or Meta they stay the browser's.
 * @param {HTMLElement} plot
 * @param {Record<string, number[]>} keys
 * @param {(...change: number[]) => void} act
 */
export function onKeys(plot, keys, act) {
  plot.addEventListener("keydown", (event) => {
    const change = keys[event.key];
    if (!change || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    act(...change);
  });
}

/** @type {Record<string, number[]>} */
export const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }; // rows, columns

/** Give a plot a name, and a place in the order of the Tab key.
 * @param {HTMLElement} plot
 * @param {HTMLElement} figure
 * @param {string} how
 */
export function describe(plot, figure, how) {
  const picture = figure.querySelector("img");
  plot.tabIndex = 0;
  plot.setAttribute("role", "application");
  plot.setAttribute("aria-label", `${picture?.alt ?? figure.dataset.label ?? ""} Interactive: ${how}`);
}
