/* Light or dark: what the reader chose, or what the system has. The theme's own way has pages styled twice more. */

import { find } from "./dom.js";

const STORED = "__palette"; // where the theme stores the choice, and applies it before anything is seen

/** Do what reads or stores the choice; some browsers store nothing. */
function trying(act) {
  try {
    return act();
  } catch {
    return null;
  }
}
/** @type {(input: HTMLElement) => Record<string, string>} */
const coloursOf = ({ dataset: { mdColorMedia: media = "", mdColorScheme: scheme = "", mdColorPrimary: primary = "", mdColorAccent: accent = "" } }) => ({ media, scheme, primary, accent }); // prettier-ignore
const fits = (input) => matchMedia(coloursOf(input).media).matches;

/** Show a palette, and the button that leads to the next; what is as it should be is left alone. */
function show(inputs, index) {
  const { body, documentElement: root } = document;
  const colours = coloursOf(inputs[index]);
  for (const [what, value] of Object.entries(colours)) {
    const name = `data-md-color-${what}`;
    if (body.getAttribute(name) !== value) body.setAttribute(name, value);
  }
  inputs.forEach((input, at) => {
    input.checked = at === index;
    input.nextElementSibling.hidden = at !== index;
  });
  const parts = colours.scheme === "slate" ? "dark" : ""; // of the browser: scroll bars
  if (root.style.colorScheme !== parts) root.style.colorScheme = parts;
}

/** Show the reader's choice, and let it be changed. */
export function startScheme() {
  const form = find('form[data-atlas="palette"]', HTMLFormElement);
  const inputs = [...(form?.elements ?? [])].filter((one) => one instanceof HTMLInputElement);
  if (!form || !inputs.length) return;
  const asked = () => trying(() => __md_get(STORED)?.index) ?? Math.max(0, inputs.findIndex(fits));
  form.addEventListener("change", ({ target }) => {
    const index = inputs.findIndex((input) => input === target);
    trying(() => __md_set(STORED, { index, color: coloursOf(inputs[index]) }));
    show(inputs, index);
  });
  form.addEventListener("keydown", ({ key }) => {
    if (key !== "Enter") return;
    const next = inputs[(inputs.findIndex((input) => input.checked) + 1) % inputs.length];
    next.click();
    next.focus();
  });
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => show(inputs, asked()));
  show(inputs, asked());
}
