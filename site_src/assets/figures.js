/* Pictures that can be turned, pointed at and searched. Each stands on a page as a picture; when one comes into view,
   that figure's numbers are fetched and it is drawn in the picture's place. Without scripts, in print or when anything
   fails, the picture stays. How a kind of figure is drawn is in a file of its own (curve.js, scatter.js, ...). */
"use strict";

(() => {
  const { ink, faded } = window.atlasDrawing;
  const touch = matchMedia("(pointer: coarse)");
  const narrow = matchMedia("(max-width: 44.9em)");

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function choice(label, options, onchange) {
    const select = element("select", { onchange: () => onchange(Number(select.value)) });
    options.forEach((name, i) => select.append(element("option", { value: i, textContent: name })));
    return [element("label", {}, `${label} `, select), select];
  }

  /** Return a place for what a figure says; screen readers say it, too. */
  function spoken() {
    const output = element("output", { className: "found" });
    output.setAttribute("aria-live", "polite");
    return output;
  }

  /** Let keys act on a plot, each with its arguments; with Ctrl, Alt or Meta they stay the browser's. */
  function onKeys(plot, keys, act) {
    plot.addEventListener("keydown", (event) => {
      const change = keys[event.key];
      if (!change || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      act(...change);
    });
  }
  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }; // rows, columns

  /** Give a plot a name, and a place in the order of the Tab key. */
  function describe(plot, figure, how) {
    const picture = figure.querySelector("img");
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-label", `${picture?.alt ?? figure.dataset.label ?? ""} Interactive: ${how}`);
  }

  const SHARED = { element, choice, spoken, onKeys, narrow, touch, describe, ARROWS };
  const live = new Map(); // figure -> what its kind keeps of it

  async function bringToLife(figure) {
    const tools = element("div", { className: "figure-tools" });
    const plot = element("div", { className: "figure-plot" });
    try {
      const response = await fetch(new URL(figure.dataset.interactive, document.baseURI));
      if (!response.ok) throw new Error(`${response.status} ${response.url}`);
      const data = window.atlasPacked(await response.json());
      if (!figure.isConnected) return;
      plot.classList.add(`figure-plot--${data.kind}`);
      figure.prepend(tools, plot);
      const drawn = window.atlasKinds[data.kind](data, plot, tools, figure, SHARED);
      live.set(figure, drawn);
      figure.atlas = drawn;
      figure.classList.add("is-live");
      window.atlasMenu(figure, drawn);
    } catch (problem) {
      tools.remove();
      plot.remove();
      figure.querySelector(".figure-facts")?.remove();
      figure.classList.remove("has-facts");
      console.warn(`A picture stays a picture: ${problem.message}`);
    }
  }

  function recolour() {
    for (const [figure, { draw }] of live) {
      if (figure.isConnected) draw();
      else live.delete(figure);
    }
  }

  narrow.addEventListener("change", recolour); // some kinds lay themselves out anew

  const inView = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        inView.unobserve(target);
        bringToLife(target);
      }
    },
    { rootMargin: "100px" },
  );

  /* Pictures large: a dialog over the page; without this script the link opens the file. */

  function openLarge(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    const picture = event.currentTarget.querySelector("img");
    const close = element("button", { type: "button", className: "md-button", textContent: "Close" });
    const scroll = element("div", { className: "large-scroll", tabIndex: 0 }, element("img", { src: picture.src, alt: picture.alt }));
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "The picture, large");
    const dialog = element("dialog", { className: "large" }, close, scroll);
    const figure = event.currentTarget.closest("figure");
    const caption = figure?.querySelector("figcaption");
    if (caption) {
      const words = element("p", {}, ...[...caption.childNodes].map((node) => node.cloneNode(true)));
      if (figure.dataset.caption) words.append(` ${figure.dataset.caption}`);
      dialog.append(element("div", { className: "large-words md-typeset" }, window.atlasMenu.large(figure), words));
    }
    dialog.setAttribute("aria-label", "Picture");
    dialog.addEventListener("click", (click) => click.target.closest("a:not([download])") && dialog.close());
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (click) => click.target === dialog && dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    event.preventDefault();
  }

  let watched = null;
  function enhance() {
    document.querySelectorAll("figure[data-interactive]:not([data-watched])").forEach((figure) => {
      figure.dataset.watched = "";
      inView.observe(figure);
    });
    document.querySelectorAll(".atlas-figure:not(.is-live, [data-menu])").forEach((figure) => {
      figure.dataset.menu = "";
      if (figure.querySelector("a.tone")) window.atlasMenu.still(figure);
    });
    document.querySelectorAll("a.tone:not([data-watched])").forEach((link) => {
      link.dataset.watched = "";
      link.addEventListener("click", openLarge);
    });
    if (watched !== document.body) {
      watched = document.body;
      new MutationObserver(recolour).observe(watched, { attributeFilter: ["data-md-color-scheme"] });
    }
    recolour();
  }

  window.atlasFigures = { describe, spoken, ink, faded, element };
  document.addEventListener("atlas:pictures", enhance); // pictures that a script has put on the page
  if (window.document$) window.document$.subscribe(() => setTimeout(enhance)); // the theme has the page
  else enhance();
})();
