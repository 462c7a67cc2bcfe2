/* Long tables can be filtered by words. Without this script a table stays as it is. */

import { all, around, element, named, onEveryPage } from "./dom.js";
import { ask } from "./print.js";

const FEWEST_TO_FILTER = 9; // rows; fewer are seen at a glance

/** Return a text as it is searched: minus signs as they are typed, case aside. */
export const plain = (string) => string.normalize("NFC").replaceAll("−", "-").toLowerCase();

/** Put a search field above the table that leaves the rows in which every word of it occurs. */
function makeFilterable(table, place) {
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(); // filled as rows are looked at
  const textOf = (row) => texts.get(row) ?? texts.set(row, plain([...row.cells].map((c) => c.textContent).join("\n"))).get(row);
  const which = element("span", { className: "visually-hidden", textContent: ` of the table: ${table.caption?.textContent ?? ""}` });
  const input = element("input", { type: "search", autocomplete: "off", spellcheck: false });
  const count = element("output");
  const all = `${rows.length} rows`;

  function filter() {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    rows.forEach((row) => (row.hidden = !words.every((word) => textOf(row).includes(word))));
    const left = rows.filter((row) => !row.hidden).length;
    const said = words.length ? `${left} of ${all}` : all;
    if (count.textContent !== said) count.textContent = said;
  }

  count.setAttribute("aria-live", "polite");
  place.before(element("div", { className: "table-tools" }, element("label", {}, "Filter rows", which, input), count));
  input.addEventListener("input", filter);
  filter();
}

/** Return a text without what is written differently from one writer to the next: "gpt2" is found in "GPT-2". */
export const squeezed = (string) => plain(string).replace(/[^\p{L}\p{N}]/gu, "");

/** Open what is folded around what the address names, and come to it. */
function unfold() {
  const place = named();
  const folded = [];
  for (let around = place?.closest("details"); around; around = around.parentElement?.closest("details")) folded.push(around);
  const closed = folded.filter((each) => !each.open);
  for (const each of closed) {
    each.open = true;
    ask(each);
  }
  if (closed.length) place?.scrollIntoView();
}
function enhance() {
  unfold();
  for (const table of all(".atlas-scroll table.plain:not([data-enhanced])")) {
    if (!(table instanceof HTMLTableElement) || !((table.tBodies[0]?.rows.length ?? 0) >= FEWEST_TO_FILTER)) continue;
    table.dataset.enhanced = "";
    makeFilterable(table, table.closest(".atlas-scroll"));
  }
}

/** Let tables be filtered, and what is folded be opened by its address. */
export function startTables() {
  addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => around(event, "a[href^='#']", HTMLElement) && setTimeout(unfold));
  onEveryPage(enhance);
}
