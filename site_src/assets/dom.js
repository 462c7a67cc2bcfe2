/* Elements, files and events of a page, for all other scripts. Importing a script does nothing: site.js starts them. */

import { SYMBOLS } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";

/** Return an element of HTML with some properties; children that are null are left out.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, unknown>} properties
 * @param {...(Node | string | null)} children
 */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Return an element of SVG with some attributes.
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 */
export function drawn(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Return what a selector finds first, null where that is nothing, or nothing of its kind.
 * @template {Element} T
 * @param {string} selector
 * @param {new () => T} kind
 * @param {ParentNode} within
 */
export function find(selector, kind, within = document) {
  const found = within.querySelector(selector);
  return found instanceof kind ? found : null;
}

/** Return what a selector finds first; a page without it is broken.
 * @template {Element} T
 * @param {string} selector
 * @param {new () => T} kind
 * @param {ParentNode} within
 */
export function part(selector, kind, within = document) {
  const found = find(selector, kind, within);
  if (!found) throw new Error(`this page has no ${selector}`);
  return found;
}

/** Return all that a selector finds.
 * @param {string} selector
 * @param {ParentNode} within
 * @returns {HTMLElement[]}
 */
export const all = (selector, within = document) => [...within.querySelectorAll(selector)].filter((one) => one instanceof HTMLElement);

/** Return the innermost element around an event that a selector fits; null for events of the page itself.
 * @template {Element} T
 * @param {Event} event
 * @param {string} selector
 * @param {new () => T} kind
 */
export function around(event, selector, kind) {
  const found = event.target instanceof Element ? event.target.closest(selector) : null;
  return found instanceof kind ? found : null;
}

/** Return what went wrong, in words.
 * @param {unknown} problem
 */
export const reason = (problem) => (problem instanceof Error ? problem.message : String(problem));

/** Return a verdict with its symbol; `weak` fails beyond chance.
 * @param {import("./numbers.js").Verdict} kind
 */
export function verdict(kind, weak = false) {
  const symbol = element("span", { textContent: weak ? "◔" : SYMBOLS[kind] });
  symbol.setAttribute("aria-hidden", "true");
  return element("span", { className: `verdict verdict--${kind}` }, symbol, weak ? " present, weak" : ` ${kind}`);
}

/** Return a part of the page that scrolls by itself, by keyboard too.
 * @param {Node} content
 */
export function scrolling(content, label = "", className = "atlas-scroll") {
  const box = element("div", { className, tabIndex: 0 }, content);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  return box;
}

/** Return the address of the site's own folder: that above the folder in which site.js is. */
export function root() {
  return new URL("..", part('script[src$="assets/site.js"]', HTMLScriptElement).src);
}

/** @type {Map<string, Promise<any>>} */
const fetched = new Map();

/** Fetch a JSON file, once; what failed may be asked for again.
 * @param {URL} url
 */
export function json(url) {
  const known = fetched.get(url.href);
  if (known) return known;
  const asked = fetch(url).then((answer) => {
    if (!answer.ok) throw new Error(`${answer.status} for ${url.pathname}`);
    return answer.json();
  });
  asked.catch(() => fetched.delete(url.href));
  fetched.set(url.href, asked);
  return asked;
}

/** Call with every page that the theme shows, in a task of its own so that the page answers before; else now.
 * @param {() => void} enhance
 */
export function onEveryPage(enhance) {
  if (window.document$) window.document$.subscribe(() => setTimeout(enhance));
  else enhance();
}

/** Return what the address names; null where it names nothing on this page, or can't be read ("#%"). */
export function named() {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null;
  }
}

/** Call whenever the reader chooses light or dark.
 * @param {() => void} act
 */
export function onScheme(act) {
  new MutationObserver(act).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
}

export const isDark = () => document.body.dataset.mdColorScheme === "slate";
export const NARROW = "(max-width: 44.9em)";
export const isNarrow = () => matchMedia(NARROW).matches;
export const isTouch = () => matchMedia("(pointer: coarse)").matches;
