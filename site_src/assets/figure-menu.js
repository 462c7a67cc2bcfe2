/* What a reader takes away from a figure: the picture (SVG, PNG), its numbers (CSV) where it is live, a citation, and an
   address, which shows a live one as it is seen now: as ?figure=<name>&view=<what>:<value>+... Pages come with menus
   that hold a link to the picture; here they get the rest. */

import { element, find, isDark, root } from "./dom.js";
import { pen2d } from "./drawing.js";

const FIGURE = "figure";
const VIEW = "view";

const LABEL = "Download, cite";
const LINKS_LAST = 10000; // milliseconds after which a saved file is let go

/** Return what a page says of itself; the site says there how it is cited. */
const meta = (name) => find(`meta[name="atlas-${name}"]`, HTMLMetaElement)?.content;

/** Return the link to a picture as it is seen, in light or dark. */
function pictureOf(figure) {
  return figure.querySelector(`a.tone--${isDark() ? "dark" : "light"}`) ?? figure.querySelector("a.tone");
}

/** Return where the file lies that a figure is made from, what model it is of, and its name. */
function fileOf(figure) {
  const file = figure.dataset.interactive ?? pictureOf(figure)?.getAttribute("href") ?? "";
  const [, root, model, name] = new URL(file, document.baseURI).pathname.match(/^(.*\/)(?:data|figures)\/([^/]+)\/([^/]+)\.\w+$/) ?? [];
  return { root, model, name };
}
const nameOf = (figure) => figure.dataset.name ?? fileOf(figure).name;
const modelOf = (figure) => figure.dataset.model ?? fileOf(figure).model;

/** Return { what: value } of an address's view. */
export function read(said) {
  const pairs = said.split(" ").map((part) => [part.slice(0, part.indexOf(":")), part.slice(part.indexOf(":") + 1)]);
  return Object.fromEntries(pairs.filter(([what]) => what).map(([what, value]) => [what, decoded(value)]));
}
function decoded(value) {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
export const spelled = (state) =>
  Object.entries(state).map(([what, value]) => `${what}:${encodeURIComponent(value)}`).join(" "); // prettier-ignore

/** Return the page on which a figure of a model stands for good: another page may show another model's one day. */
function pageOf(figure) {
  const { root, model } = fileOf(figure);
  const page = model && model !== "series" ? new URL(`${root}models/${model}/`, document.baseURI) : null;
  return page === null || page.pathname === location.pathname ? new URL(location.href) : page;
}

/** Return an address as the site is published under it. */
function published(url) {
  const known = find('link[rel="canonical"]', HTMLLinkElement)?.href;
  const top = root();
  const [here, folder] = [location.pathname, top.pathname];
  const inside = known?.endsWith(here.slice(folder.length)) && here.startsWith(folder);
  const site = known && inside ? known.slice(0, known.length - (here.length - folder.length)) : top.href;
  return `${site}${url.pathname.slice(folder.length)}${url.search}${url.hash}`.replaceAll("%3A", ":");
}

/** Return where a figure is seen, a live one as it is now; what else the address of this page asks for stays. */
function addressOf(figure, state) {
  const url = pageOf(figure);
  for (const part of [FIGURE, VIEW]) url.searchParams.delete(part);
  if (state !== undefined) {
    url.searchParams.set(FIGURE, nameOf(figure));
    url.searchParams.set(VIEW, state);
  }
  url.hash = figure.id && url.pathname === location.pathname ? figure.id : `figure-${nameOf(figure)}`;
  return published(url);
}

/** Return a line as CSV has it: quoted where a mark of the format is inside. */
const field = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
export const asCsv = (rows) =>
  `${rows.map((row) => row.map((value) => field(String(value ?? ""))).join(",")).join("\r\n")}\r\n`;

function save(content, kind, name) {
  const blob = content instanceof Blob ? content : new Blob([content], { type: kind });
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), LINKS_LAST);
}

function titleOf(figure) {
  const title = figure.querySelector("figcaption strong")?.textContent.trim().replace(/\.$/, "");
  return title ? `“${title}”` : "A figure";
}

const whatOf = (figure) => figure.dataset.cite ?? [titleOf(figure), modelOf(figure)].filter(Boolean).join(", ");

function citation(figure, state) {
  const today = new Date().toISOString().slice(0, 10);
  return `${meta("citation") ?? "Helix Atlas."} ${whatOf(figure)}. ${addressOf(figure, state)} (seen ${today}).`;
}

/** Return how the atlas is cited in BibTeX, with which figure of it is meant and where that is seen. */
function bibtex(figure, state) {
  const words = whatOf(figure).replaceAll("“", "``").replaceAll("”", "''").replace(/[&%$#_]/g, "\\$&");
  const key = `helix_atlas_${modelOf(figure)}_${nameOf(figure)}`.replace(/\W/g, "_");
  return `@misc{${key},\n${meta("bibtex")},\n  howpublished = {${words}},\n  url    = {${addressOf(figure, state)}}\n}`;
}

/** Return a picture as a PNG file, twice as fine as it is drawn. */
async function asPng(link) {
  const [picture, seen] = [new Image(), link.querySelector("img")];
  picture.src = link.href;
  await picture.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: 2 * seen.getAttribute("width"), height: 2 * seen.getAttribute("height") });
  const drawn = pen2d(canvas);
  drawn.fillStyle = getComputedStyle(document.body).backgroundColor;
  drawn.fillRect(0, 0, canvas.width, canvas.height);
  drawn.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

let menus = 0;

function bare() {
  const summary = element("summary", { className: "md-button", title: LABEL, textContent: LABEL });
  return element("details", { className: "figure-menu" }, summary, element("div", { className: "figure-menu-list" }));
}

/** Fill a menu with what can be had of a figure: of its picture, or, where it is live, of what is `drawn`. */
function fill(menu, figure, drawn) {
  const [summary, list] = menu.children;
  const file = `${modelOf(figure)}-${nameOf(figure)}`;
  const first = drawn && spelled(drawn.state());
  const state = () => drawn && spelled(drawn.state());
  const turned = () => (state() === first ? undefined : state()); // what is seen at first needs no view
  const picture = element("a", { className: "md-button", textContent: "SVG", download: `${file}.svg` });
  if (!drawn) picture.href = pictureOf(figure).href;
  list.replaceChildren(...(drawn ? [] : [picture]));
  const notice = element("output");
  notice.setAttribute("aria-live", "polite");
  const text = element("textarea", { readOnly: true, rows: 3, hidden: true, id: `figure-menu-${++menus}` });
  const show = (words, label) => {
    text.value = words;
    text.setAttribute("aria-label", label);
    text.hidden = false;
  };
  const cite = () => {
    if (!menu.open) text.hidden = true; // what is seen may be another view when it opens again
    else if (text.hidden) show(citation(figure, turned()), "Citation");
  };

  const title = () => `${figure.querySelector("figcaption strong")?.textContent ?? file} ${modelOf(figure)}`;
  async function copy(words, what) {
    show(words, "What was copied");
    try {
      await navigator.clipboard.writeText(words);
      notice.textContent = `Copied: ${what}.`;
    } catch {
      text.focus();
      text.select();
      notice.textContent = `This is the ${what}, to be copied.`;
    }
  }
  const actions = [
    drawn && ["SVG", () => save(drawn.svg(title()), "image/svg+xml", `${file}.svg`)],
    ["PNG", async () => save(await (drawn ? drawn.png() : asPng(pictureOf(figure))), "image/png", `${file}.png`)],
    drawn && ["CSV", () => save(asCsv(drawn.csv()), "text/csv", `${file}.csv`)],
    ["Copy citation", () => copy(citation(figure, turned()), "citation")],
    meta("bibtex") && ["Copy BibTeX", () => copy(bibtex(figure, turned()), "entry for BibTeX")],
    ["Copy address", () => copy(addressOf(figure, state()), drawn ? "address of this view" : "address")],
  ].filter(Boolean);
  for (const [label, act] of actions) {
    const button = element("button", { type: "button", className: "md-button", textContent: label });
    button.addEventListener("click", act);
    list.append(button);
  }
  list.append(notice, text);
  menu.ontoggle = cite; // of the last filling alone
  cite();
  if (menu.dataset.watched === undefined) menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    event.stopPropagation();
    summary.focus();
  });
  menu.dataset.watched = "";
  return menu;
}

/** Return a figure's name, and let it be its address where no other bears it. */
function named(figure) {
  const name = nameOf(figure);
  if (!figure.id && !document.getElementById(`figure-${name}`)) figure.id = `figure-${name}`;
  return name;
}

/** Return the menu of a figure; one that came without gets it below what is seen, above its caption. */
function menuOf(figure) {
  const there = figure.querySelector(".figure-menu");
  if (there) return there;
  const menu = bare();
  figure.insertBefore(element("div", { className: "figure-tools" }, menu), figure.querySelector("figcaption"));
  return menu;
}

/** Give a live figure its menu, and show it as the address asks. */
export function liveMenu(figure, drawn) {
  const name = named(figure);
  fill(menuOf(figure), figure, drawn);

  const asked = new URL(location.href).searchParams;
  if (asked.get(FIGURE) === name && asked.has(VIEW)) drawn.restore(read(asked.get(VIEW)));
}

/** Return a menu for what is seen of a figure where it is large. */
export const largeMenu = (figure) => fill(bare(), figure);

/** Give a figure that is a picture its menu, which is filled when it is opened. */
export function stillMenu(figure) {
  named(figure);
  const menu = menuOf(figure);
  menu.addEventListener("toggle", () => figure.classList.contains("is-live") || fill(menu, figure), { once: true });
}
