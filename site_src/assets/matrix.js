/* The matrix of models and claims: filters above it, which the address names, and a cell's value and sentence where it is
   pointed at or focused. Without this script the whole matrix stays, and a cell's title has its sentence. */

import { all, around, element, onEveryPage } from "./dom.js";
import { plain, squeezed } from "./tables.js";

const FEWEST_TO_FILTER = 9; // models; fewer are seen at a glance
const EVERYTHING = "everything";
const SHOWN = { close: "Close calls", fails: "Fails", first: "Holds in" };

const param = (name) => new URLSearchParams(location.search).get(name) ?? "";

/** Say in the address how the matrix is seen; what is empty is left out.
 * @param {Record<string, string>} seen
 */
function remember(seen) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(seen)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

/** Return whether a model's name has every word, however the name is written: "gpt2" is found in "GPT-2".
 * @param {string} name
 * @param {string} typed
 */
export function isNamed(name, typed) {
  const words = plain(typed).split(/\s+/).filter(Boolean);
  return words.every((word) => plain(name).includes(word) || squeezed(name).includes(squeezed(word) || word));
}

/** Return which cells a choice keeps in full color: of the first model, whole columns.
 * @param {string} show
 * @param {HTMLTableRowElement | undefined} first
 */
function keeps(show, first) {
  const is = (cell, kind) => cell?.classList.contains(kind) ?? false;
  if (show === "close") return (cell) => is(cell, "is-close");
  if (show === "fails") return (cell) => is(cell, "cell--fails");
  if (show === "first") return (cell) => is(first?.cells[cell.cellIndex], "cell--holds");
  return () => true;
}

/** Show those claims of a table that are asked about and have a cell to show; return how many.
 * @param {HTMLTableElement} table
 * @param {{ show: string, about: string, models: string, first: string }} seen
 */
function choose(table, { show, about, models, first }) {
  const [heads, ...rows] = table.rows;
  const named = (row) => row.cells[0].textContent.trim();
  const keep = keeps(show, rows.find((row) => named(row) === first));
  for (const row of rows) row.hidden = !isNamed(named(row), models);
  const left = rows.filter((row) => !row.hidden);
  const hide = (column, hidden) => [heads, ...rows].forEach((row) => (row.cells[column].hidden = hidden));

  let claims = 0;
  let findings = 0;
  let begin = 0; // the column that names the finding
  for (let column = 1; column < heads.cells.length; column += 1) {
    hide(column, true);
    if (heads.cells[column].classList.contains("of")) {
      begin = column;
      continue;
    }
    const asked = [EVERYTHING, captionOf(table), heads.cells[begin].textContent.trim()].includes(about);
    if (!asked || !left.some((row) => keep(row.cells[column]))) continue;
    findings += Number(heads.cells[begin].hidden);
    claims += 1;
    hide(begin, false);
    hide(column, false);
    for (const row of rows) row.cells[column].classList.toggle("is-faded", !keep(row.cells[column]));
  }
  table.style.setProperty("--claims", String(claims + findings)); // rows, when it is transposed
  const region = table.parentElement;
  if (region) region.hidden = !claims;
  return claims;
}

const captionOf = (table) => table.caption?.textContent.trim() ?? "";

/** Put filters above a matrix. */
function makeFilterable(matrix) {
  const tables = all("table.claims-grid", matrix).filter((one) => one instanceof HTMLTableElement);
  const first = matrix.dataset.first ?? "";
  const select = element("select");
  select.append(new Option(EVERYTHING));
  for (const table of tables) {
    const inside = all("thead .of", table).map((head) => new Option(head.textContent.trim()));
    const group = captionOf(table);
    select.append(element("optgroup", { label: group }, new Option(`all ${group.toLowerCase()}`, group), ...inside));
  }
  const input = element("input", { type: "search", autocomplete: "off" });
  const count = element("output");
  const buttons = Object.entries(SHOWN)
    .filter(([name]) => name !== "first" || first)
    .map(([name, title]) => {
      const called = name === "first" ? `${title} ${first}` : title;
      const button = element("button", { type: "button", className: "md-button", textContent: called });
      button.dataset.show = name;
      return button;
    });
  const enough = tables[0].tBodies[0].rows.length >= FEWEST_TO_FILTER;
  const typed = enough ? [element("label", {}, "Models", input)] : [];
  const tools = element("div", { className: "table-tools" }, ...buttons, element("label", {}, "Claims about", select), ...typed, count);
  matrix.prepend(tools);
  count.setAttribute("aria-live", "polite");

  let show = SHOWN[param("show")] ? param("show") : "";
  const update = () => {
    const seen = { show, about: select.value, models: input.value.trim() };
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.show === show)));
    const shown = tables.reduce((sum, table) => sum + choose(table, { ...seen, first }), 0);
    const said = `${shown} ${shown === 1 ? "claim" : "claims"}`;
    if (count.textContent !== said) count.textContent = said;
    remember({ ...seen, about: seen.about === EVERYTHING ? "" : seen.about });
  };
  buttons.forEach((button) =>
    button.addEventListener("click", () => {
      const asked = button.dataset.show ?? "";
      show = show === asked ? "" : asked;
      update();
    }),
  );
  select.addEventListener("change", update);
  input.addEventListener("input", update);
  const about = param("about");
  if ([...select.options].some((option) => option.value === about)) select.value = about;
  input.value = enough ? param("models") : "";
  const asked = [...buttons.map((button) => button.dataset.show === show), input.value, select.value !== EVERYTHING].some(Boolean);
  if (asked && !location.hash) matrix.scrollIntoView();
  update();
}

/* The value and the sentence of a cell */

/** Return what is said of a cell: its title, which the browser would show a second time, and what it is about. */
function saying(link) {
  if (link.title) {
    link.dataset.says = link.title;
    link.removeAttribute("title");
  }
  const cell = link.closest("td");
  const table = cell?.closest("table.claims-grid");
  const about = table ? [cell.parentElement.cells[0], table.tHead.rows[0].cells[cell.cellIndex]].map((head) => head.textContent.trim()) : [];
  return [about.join(", "), link.dataset.says ?? ""];
}

function showTip(link) {
  hideTip();
  const [about, says] = saying(link);
  if (!says) return;
  const tip = element("div", { className: "matrix-tip" }, about ? element("strong", { textContent: about }) : null, says);
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  const at = link.getBoundingClientRect();
  const left = Math.min(at.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
  const above = at.bottom + tip.offsetHeight + 8 > innerHeight;
  tip.style.left = `${Math.max(8, left) + scrollX}px`;
  tip.style.top = `${(above ? at.top - tip.offsetHeight - 6 : at.bottom + 6) + scrollY}px`;
}
function hideTip() {
  document.querySelector(".matrix-tip")?.remove();
}
const CELL = ":is(.claims-grid, .bar, .matrix--small) .cell a";

function enhance() {
  hideTip();
  for (const matrix of all(".claims-matrix:not([data-enhanced])")) {
    matrix.dataset.enhanced = "";
    makeFilterable(matrix);
  }
}

/** Let the matrix be filtered, and its cells say what they know. */
export function startMatrix() {
  for (const event of ["pointerover", "focusin"]) {
    document.addEventListener(event, (about) => {
      const link = around(about, CELL, HTMLAnchorElement);
      if (link) showTip(link);
      else if (event === "pointerover") hideTip();
    });
  }
  document.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
  onEveryPage(enhance);
}
