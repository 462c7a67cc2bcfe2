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

const is = (cell, kind) => cell.classList.contains(`cell--${kind}`);

/** Return which cells a choice keeps in full color; of the first model's, whole columns.
 * @param {string} show
 * @param {Element | undefined} first
 */
function keeps(show, first) {
  if (show === "close") return (cell) => cell.classList.contains("is-close");
  if (show === "fails") return (cell) => is(cell, "fails");
  if (show === "first" && first) return (_, column) => is(first.children[column], "holds");
  return () => true;
}

/** Show a table's claims of one finding, and of these the cells that are asked for.
 * @param {HTMLTableElement} table
 * @param {{ show: string, about: string, models: string, first: string }} seen
 */
function choose(table, { show, about, models, first }) {
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.tBodies[0].rows];
  const group = table.caption?.textContent.trim();
  const keep = keeps(show, rows.find((row) => row.cells[0].textContent.trim() === first));
  for (const row of rows) row.hidden = !isNamed(row.cells[0].textContent, models);
  const seen = rows.filter((row) => !row.hidden);
  let spacer = 0;
  let shown = 0;
  heads.forEach((head, column) => {
    if (!column) return;
    const begins = head.classList.contains("of");
    if (begins) spacer = column;
    const inside = [EVERYTHING, group, heads[spacer].textContent.trim()].includes(about);
    const kept = (row) => keep(row.cells[column], column);
    const hidden = begins || !inside || !(show ? seen.some(kept) : true);
    for (const row of [heads, ...rows.map((each) => [...each.cells])]) {
      if (!begins) row[column].classList.toggle("is-faded", false);
      row[column].hidden = hidden;
      if (!hidden) row[spacer].hidden = false;
    }
    if (!hidden) rows.forEach((row) => row.cells[column].classList.toggle("is-faded", !kept(row)));
    shown += Number(!hidden);
  });
  const findings = heads.filter((head) => head.classList.contains("of") && !head.hidden).length;
  table.style.setProperty("--claims", String(shown + findings));
  const region = table.closest(".atlas-scroll");
  if (region instanceof HTMLElement) region.hidden = !shown;
  return shown;
}

/** Put filters above a matrix. */
function makeFilterable(matrix) {
  const tables = all("table.claims-grid", matrix);
  const first = matrix.dataset.first ?? "";
  const select = element("select");
  select.append(new Option(EVERYTHING));
  for (const table of tables) {
    const inside = all("thead .of", table).map((head) => new Option(head.textContent.trim()));
    const group = table.querySelector("caption").textContent.trim();
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
      show = show === button.dataset.show ? "" : button.dataset.show;
      update();
    }),
  );
  select.addEventListener("change", update);
  input.addEventListener("input", update);
  const about = param("about");
  if ([...select.options].some((option) => option.value === about)) select.value = about;
  input.value = enough ? param("models") : "";
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
