/* Tables people can use: sort by any column, filter by words. Without this script a table stays as it is. */

import { all, around, element, named, onEveryPage } from "./dom.js";

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
  const all = `${table.dataset.total ? "the first " : ""}${rows.length} rows`; // the rest are in the CSV

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

/** Say in the address how the matrix is seen, so that it can be given to others; null leaves a thing out. */
function remember(seen) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(seen)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}
const remembered = (name) => new URLSearchParams(location.search).get(name) ?? "";

/* The matrix of models and claims: its cells are verdicts with an effect size. */

const VERDICTS = ["holds", "partly", "fails", "untested"];

const rank = (cell) => VERDICTS.indexOf(/cell--(\w+)/.exec(cell.className)?.[1] ?? "untested");
/** Return a cell's effect size: as it is given for scripts, or else as it is written; 0 where there is none. */
const effect = (cell) => Math.abs(Number(cell.dataset.value ?? cell.textContent.trim().split(/\s/).at(-1).replace("−", "-"))) || 0;

/** Compare two cells of the matrix: by verdict, within one by effect size, the largest first. */
export const byVerdict = (one, other) => rank(one) - rank(other) || effect(other) - effect(one);

/** Give every column of the matrix a button that sorts the models by it, and back. */
function makeMatrixSortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headers = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const names = headers.map((header) => header.textContent.trim());
  headers.forEach((header, column) => {
    const name = names[column];
    const button = element("button", { type: "button", className: "matrix-sort" }, sortMark());
    button.setAttribute("aria-label", `Sort by ${name}`);
    header.append(button);
    button.addEventListener("click", () => {
      const before = header.getAttribute("aria-sort");
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      remember({ sort: before === "descending" ? null : name, order: before === "ascending" ? "descending" : null });
      if (before === "descending") return body.append(...original);
      header.setAttribute("aria-sort", before ? "descending" : "ascending");
      const sign = before ? -1 : 1;
      const compare = column
        ? (a, b) => byVerdict(a.cells[column], b.cells[column])
        : (a, b) => byWords(a.cells[0].textContent, b.cells[0].textContent);
      return body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
    });
  });
  const [asked, order] = ["sort", "order"].map(remembered);
  const button = headers[names.indexOf(asked)]?.querySelector(".matrix-sort");
  button?.click();
  if (order === "descending") button?.click();
}

/** Put choices above the matrix: which models, and the claims of which group or finding. */
function makeMatrixFilterable(table, place) {
  const headers = [...table.tHead.rows];
  const [groups, findings] = headers.slice(-3, -1).map((row) => spans([...row.cells].slice(1)));
  const select = element("select");
  const input = element("input", { type: "search", autocomplete: "off" });
  const everything = { from: 1, to: Infinity };
  const choices = [everything, ...groups, ...findings];
  const option = (span) => new Option(span.name, String(choices.indexOf(span)));
  select.append(new Option("everything", "0"), ...groups.map(option));
  for (const group of groups) {
    const inside = findings.filter((finding) => overlap(finding, group) > 0);
    select.append(element("optgroup", { label: group.name }, ...inside.map(option)));
  }
  const labels = [element("label", {}, "Models", input), element("label", {}, "Claims about", select)];
  place.before(element("div", { className: "table-tools" }, ...labels));

  const found = (name, word) => plain(name).includes(word) || squeezed(name).includes(squeezed(word) || word);
  const filter = () => {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) row.hidden = !words.every((word) => found(row.cells[0].textContent, word));
    remember({ models: input.value.trim() });
  };
  const choose = () => {
    const chosen = choices[Number(select.value)];
    for (const span of [...groups, ...findings]) {
      const seen = overlap(span, chosen);
      span.cell.hidden = seen <= 0;
      span.cell.colSpan = Math.max(1, seen);
    }
    place.scrollLeft = 0;
    for (const row of [headers.at(-1), ...table.tBodies[0].rows]) {
      [...row.cells].forEach((cell, i) => (cell.hidden = i > 0 && (i < chosen.from || i >= chosen.to)));
    }
    remember({ about: chosen.name });
  };
  input.addEventListener("input", filter);
  select.addEventListener("change", choose);
  const [models, about] = ["models", "about"].map(remembered);
  const asked = about ? choices.findIndex((span) => span.name === about) : -1;
  if (models) {
    input.value = models;
    filter();
  }
  if (asked > 0) {
    select.value = String(asked);
    choose();
  }
}

/** Return which columns the cells of a header's row stand above. */
function spans(cells) {
  let next = 1;
  return cells.map((cell) => ({ cell, name: cell.textContent.trim(), from: next, to: (next += cell.colSpan) }));
}

/** Return how many columns two spans share; none or less where they are apart. */
const overlap = (one, other) => Math.min(one.to, other.to) - Math.max(one.from, other.from);

/** Open the folded table that the address names. */
function unfold() {
  const place = named();
  if (place instanceof HTMLDetailsElement) place.open = true;
}
function enhancePlain(table) {
  makeSortable(table);
  if (table.tBodies[0].rows.length >= FEWEST_TO_FILTER) makeFilterable(table, table.closest(".atlas-scroll"));
}

function enhance() {
  unfold();
  for (const table of all("table.matrix--wide:not([data-enhanced])")) {
    table.dataset.enhanced = "";
    makeMatrixSortable(table);
    makeMatrixFilterable(table, table.closest(".atlas-scroll"));
  }
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
