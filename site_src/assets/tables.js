/* Tables people can use: sort by any column, filter by words. Without this script a table stays as it is. */

import { all, around, element, named, onEveryPage } from "./dom.js";
import { ask } from "./print.js";

const FEWEST_TO_FILTER = 9; // rows; fewer are seen at a glance
let collator; // made when a table is first sorted by words: it takes longer than all else here
const byWords = (a, b) => (collator ??= new Intl.Collator("en", { numeric: true })).compare(a, b);

/** Return a cell's raw value: the number behind a rounded one, null for an absent one. */
export function valueOf(cell) {
  const raw = cell?.dataset.value ?? cell?.textContent.trim() ?? "";
  if (raw === "") return null;
  return cell.classList.contains("n") ? Number(raw.replace("−", "-")) : raw;
}

/** Return a comparison of two values of a column: numbers by size if all are numbers, else as text. */
function comparison(values) {
  const numeric = values.every((value) => value === null || typeof value === "number");
  return numeric ? (a, b) => a - b : byWords;
}

/** Return rows in the order of a column; equal ones stay in the order they have, absent values come last. */
export function sorted(rows, column, sign) {
  const values = new Map(rows.map((row) => [row, valueOf(row.cells[column])]));
  const compare = comparison([...values.values()]);
  return [...rows].sort((a, b) => {
    const [x, y] = [values.get(a), values.get(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * compare(x, y);
  });
}

function sortMark() {
  const mark = element("span", { className: "sort-mark" });
  mark.setAttribute("aria-hidden", "true");
  return mark;
}

/** Make every header a button: ascending, descending, then the order that the page came with. */
function makeSortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];
  const show = (rows) => body.append(...rows);

  function turn(header, column) {
    const before = header.getAttribute("aria-sort");
    headers.forEach((other) => other.removeAttribute("aria-sort"));
    if (before === "descending") return show(original);
    header.setAttribute("aria-sort", before ? "descending" : "ascending");
    return show(sorted([...body.rows], column, before ? -1 : 1));
  }

  headers.forEach((header, column) => {
    const button = element("button", { type: "button" }, ...header.childNodes, sortMark());
    button.addEventListener("click", () => turn(header, column));
    header.append(button);
  });
}

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
function enhancePlain(table) {
  makeSortable(table);
  if (table.tBodies[0].rows.length >= FEWEST_TO_FILTER) makeFilterable(table, table.closest(".atlas-scroll"));
}

function enhance() {
  unfold();
  for (const table of all(".atlas-scroll table.plain:not([data-enhanced])")) {
    if (!(table instanceof HTMLTableElement) || !table.tHead || !table.tBodies.length) continue;
    table.dataset.enhanced = "";
    setTimeout(() => enhancePlain(table)); // one at a time, so that the page can answer in between
  }
}

/** Let tables be sorted and filtered, and folded ones opened by their address. */
export function startTables() {
  addEventListener("hashchange", unfold);
  document.addEventListener("click", (event) => around(event, "a[href^='#']", HTMLElement) && setTimeout(unfold));
  onEveryPage(enhance);
}
