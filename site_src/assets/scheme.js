/* Light or dark: what the reader chose, or what the system has. The theme's own way has pages styled twice more. */
"use strict";

(() => {
  const KEPT = "__palette"; // where the theme keeps the choice, and applies it before anything is seen
  const { body, documentElement: root } = document;
  const form = document.querySelector('form[data-atlas="palette"]');
  const inputs = [...(form?.elements ?? [])];
  if (!inputs.length) return;

  /** Do what reads or keeps the choice; some browsers keep nothing. */
  function trying(act) {
    try {
      return act();
    } catch {
      return null;
    }
  }
  const coloursOf = ({ dataset: { mdColorMedia: media, mdColorScheme: scheme, mdColorPrimary: primary, mdColorAccent: accent } }) => ({ media, scheme, primary, accent }); // prettier-ignore
  const fits = (input) => matchMedia(coloursOf(input).media).matches;
  const asked = () => trying(() => __md_get(KEPT)?.index) ?? Math.max(0, inputs.findIndex(fits));

  /** Show a palette, and the button that leads to the next; what is as it should be is left alone. */
  function show(index) {
    const colours = coloursOf(inputs[index]);
    for (const what in colours) {
      const name = `data-md-color-${what}`;
      if (body.getAttribute(name) !== colours[what]) body.setAttribute(name, colours[what]);
    }
    inputs.forEach((input, at) => {
      input.checked = at === index;
      input.nextElementSibling.hidden = at !== index;
    });
    const parts = colours.scheme === "slate" ? "dark" : ""; // of the browser: scroll bars
    if (root.style.colorScheme !== parts) root.style.colorScheme = parts;
  }

  form.addEventListener("change", ({ target }) => {
    const index = inputs.indexOf(target);
    trying(() => __md_set(KEPT, { index, color: coloursOf(target) }));
    show(index);
  });
  form.addEventListener("keydown", ({ key }) => {
    if (key !== "Enter") return;
    const next = inputs[(inputs.findIndex((input) => input.checked) + 1) % inputs.length];
    next.click();
    next.focus();
  });
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => show(asked()));
  show(asked());
})();
