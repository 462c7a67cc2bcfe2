/* Tables people can use: sort by any column, filter by words. Without this script a table stays as it is. */
"use strict";

(() => {
  const FEWEST_TO_FILTER = 9; // rows; fewer are seen at a glance
  const text = new Intl.Collator("en", { numeric: true });

  /** Return a cell's raw value: the number behind a rounded one, null for an absent one. */
  function valueOf(cell) {
    const raw = cell?.dataset.value ?? cell?.textContent.trim() ?? "";
    if (raw === "") return null;
    return cell.classList.contains("n") ? Number(raw) : raw;
  }

  /** Return a comparison of two values of a column: numbers by size if all are numbers, else as text. */
  function comparison(values) {
    const numeric = values.every((value) => value === null || typeof value === "number");
    return numeric ? (a, b) => a - b : (a, b) => text.compare(a, b);
  }

  /** Return rows in the order of a column; equal ones stay in the order they have, absent values come last. */
  function sorted(rows, column, sign) {
    const values = new Map(rows.map((row) => [row, valueOf(row.cells[column])]));
    const compare = comparison([...values.values()]);
    return [...rows].sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return sign * compare(x, y);
    });
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
      const button = document.createElement("button");
      const mark = document.createElement("span");
      button.type = "button";
      mark.className = "sort-mark";
      mark.setAttribute("aria-hidden", "true");
      button.append(...header.childNodes, mark);
      button.addEventListener("click", () => turn(header, column));
      header.append(button);
    });
  }

  /** Return a text as it is searched: minus signs as they are typed, case aside. */
  const plain = (string) => string.normalize("NFC").replaceAll("−", "-").toLowerCase();

  /** Put a search field above the table that leaves the rows in which every word of it occurs. */
  function makeFilterable(table, place) {
    const rows = [...table.tBodies[0].rows];
    const texts = new Map(rows.map((row) => [row, plain([...row.cells].map((c) => c.textContent).join("\n"))]));
    const tools = document.createElement("div");
    const label = document.createElement("label");
    const which = document.createElement("span");
    const input = document.createElement("input");
    const count = document.createElement("output");
    const all = `${table.dataset.total ? "the first " : ""}${rows.length} rows`; // the rest are in the CSV

    function filter() {
      const words = plain(input.value).split(/\s+/).filter(Boolean);
      rows.forEach((row) => (row.hidden = !words.every((word) => texts.get(row).includes(word))));
      const left = rows.filter((row) => !row.hidden).length;
      const said = words.length ? `${left} of ${all}` : all;
      if (count.textContent !== said) count.textContent = said;
    }

    tools.className = "table-tools";
    which.className = "visually-hidden";
    which.textContent = ` of the table: ${table.caption?.textContent ?? ""}`;
    input.type = "search";
    input.autocomplete = "off";
    input.spellcheck = false;
    count.setAttribute("aria-live", "polite");
    label.append("Filter rows", which, input);
    tools.append(label, count);
    place.before(tools);
    input.addEventListener("input", filter);
    filter();
  }

  function enhance() {
    for (const table of document.querySelectorAll(".atlas-scroll table.plain:not([data-enhanced])")) {
      if (!table.tHead || !table.tBodies.length) continue;
      table.dataset.enhanced = "";
      makeSortable(table);
      if (table.tBodies[0].rows.length >= FEWEST_TO_FILTER) makeFilterable(table, table.closest(".atlas-scroll"));
    }
  }

  if (window.document$) window.document$.subscribe(enhance); // Material: again after each instant navigation
  else enhance();
})();
