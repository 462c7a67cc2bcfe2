/* Light or dark: what the reader chose, or else what the system has. The theme's own way to do it looks at the header's
   colours while a page loads, for which the browser styles all of it twice more; pages come without it (plugin.py). */
"use strict";

(() => {
  const KEPT = "__palette"; // where the theme keeps the choice, and applies it before anything is seen
  const COLOURS = ["media", "scheme", "primary", "accent"];
  const form = document.querySelector('form[data-atlas="palette"]');
  const inputs = form ? [...form.querySelectorAll("input")] : [];
  if (!inputs.length) return;

  const attribute = (what) => `data-md-color-${what}`;
  const coloursOf = (input) => Object.fromEntries(COLOURS.map((what) => [what, input.getAttribute(attribute(what))]));

  /** Return the number of what was chosen, null where nothing was or a browser keeps nothing. */
  function kept() {
    try {
      return __md_get(KEPT)?.index ?? null;
    } catch {
      return null;
    }
  }

  function keep(index) {
    try {
      __md_set(KEPT, { index, color: coloursOf(inputs[index]) });
    } catch {
      // it holds for this page
    }
  }

  /** Return the number of the palette to be seen. */
  function asked() {
    const index = kept() ?? inputs.findIndex((input) => matchMedia(input.getAttribute(attribute("media"))).matches);
    return Math.max(0, Math.min(index, inputs.length - 1));
  }

  /** Show a palette, and the button that leads to the next; what is as it should be is left alone. */
  function show(index) {
    for (const [what, value] of Object.entries(coloursOf(inputs[index])))
      if (document.body.getAttribute(attribute(what)) !== value) document.body.setAttribute(attribute(what), value);
    inputs.forEach((input, at) => {
      input.checked = at === index;
      input.nextElementSibling.hidden = at !== index;
    });
    const parts = document.body.getAttribute(attribute("scheme")) === "slate" ? "dark" : ""; // of the browser: scroll bars
    if (document.documentElement.style.colorScheme !== parts) document.documentElement.style.colorScheme = parts;
  }

  inputs.forEach((input, index) =>
    input.addEventListener("change", () => {
      keep(index);
      show(index);
    }),
  );
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const next = inputs[(asked() + 1) % inputs.length];
    next.click();
    next.focus();
  });
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", () => show(asked()));
  show(asked());
})();
