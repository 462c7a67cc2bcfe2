/* Pictures that can be turned, pointed at and searched. Each stands on a page as a picture; when one comes into view,
   that figure's numbers are fetched and it is drawn in the picture's place. Without scripts, in print or when anything
   fails, the picture stays. How a kind of figure is drawn is in a file of its own (curve.js, scatter.js, ...). */

import { drawCurve } from "./curve.js";
import { NARROW, all, around, element, json, onEveryPage, onScheme, reason, scrolling } from "./dom.js";
import { largeMenu, liveMenu, stillMenu } from "./figure-menu.js";
import { drawHeads } from "./heads.js";
import { drawPanels } from "./panels.js";
import { drawScatter } from "./scatter.js";

const KINDS = { curve: drawCurve, heads: drawHeads, panels: drawPanels, scatter: drawScatter };
const live = new Map(); // figure -> what is drawn in it

async function bringToLife(figure) {
  const tools = element("div", { className: "figure-tools" });
  const plot = element("div", { className: "figure-plot" });
  try {
    const data = await json(new URL(figure.dataset.interactive, document.baseURI));
    if (!figure.isConnected) return;
    plot.classList.add(`figure-plot--${data.kind}`);
    figure.prepend(tools, plot);
    const drawn = KINDS[data.kind](data, plot, tools, figure);
    live.set(figure, drawn);
    figure.atlas = drawn;
    figure.classList.add("is-live");
    liveMenu(figure, drawn);
  } catch (problem) {
    tools.remove();
    plot.remove();
    figure.querySelector(".figure-facts")?.remove();
    figure.classList.remove("has-facts");
    console.warn(`A picture stays a picture: ${reason(problem)}`);
  }
}

function redraw() {
  for (const [figure, { draw }] of live) {
    if (figure.isConnected) draw();
    else live.delete(figure);
  }
}

/* Pictures large: a dialog over the page; without this script the link opens the file. */

function openLarge(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
  const picture = event.currentTarget.querySelector("img");
  const close = element("button", { type: "button", className: "md-button", textContent: "Close" });
  const scroll = scrolling(element("img", { src: picture.src, alt: picture.alt }), "The picture, large", "large-scroll");
  const dialog = element("dialog", { className: "large" }, close, scroll);
  const figure = event.currentTarget.closest("figure");
  const caption = figure?.querySelector("figcaption");
  if (caption) {
    const words = element("p", {}, ...[...caption.childNodes].map((node) => node.cloneNode(true)));
    if (figure.dataset.caption) words.append(` ${figure.dataset.caption}`);
    dialog.append(element("div", { className: "large-words md-typeset" }, largeMenu(figure), words));
  }
  dialog.setAttribute("aria-label", "Picture");
  dialog.addEventListener("click", (click) => around(click, "a:not([download])", HTMLElement) && dialog.close());
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (click) => click.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  event.preventDefault();
}

/** Bring figures to life as they come into view, and let pictures be opened large. */
export function startFigures() {
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
  const enhance = () => enhanceAll(inView);
  onScheme(redraw);
  matchMedia(NARROW).addEventListener("change", redraw); // some kinds lay themselves out anew
  document.addEventListener("atlas:pictures", enhance); // pictures that a script has put on the page
  onEveryPage(enhance);
}

function enhanceAll(inView) {
  all("figure[data-interactive]:not([data-watched])").forEach((figure) => {
    figure.dataset.watched = "";
    inView.observe(figure);
  });
  all(".atlas-figure:not(.is-live, [data-menu])").forEach((figure) => {
    figure.dataset.menu = "";
    if (figure.querySelector("a.tone")) stillMenu(figure);
  });
  all("a.tone:not([data-watched])").forEach((link) => {
    link.dataset.watched = "";
    if (link instanceof HTMLAnchorElement && link.pathname.endsWith(".svg")) link.addEventListener("click", openLarge);
  });
  redraw();
}
