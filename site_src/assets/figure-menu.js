/* What a reader takes away from a figure: the picture (SVG, PNG), its numbers (CSV), a citation, and an address that
   shows it as it is seen now. The state travels in the address as ?figure=<name>&view=<what>:<value>+... */
"use strict";

window.atlasMenu = (() => {
  const FIGURE = "figure";
  const VIEW = "view";

  const nameOf = (figure) => figure.dataset.name ?? figure.dataset.interactive.split("/").at(-1).replace(/\.json$/, "");

  /** Return { what: value } of an address's view. */
  function read(said) {
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
  const said = (state) =>
    Object.entries(state).map(([what, value]) => `${what}:${encodeURIComponent(value)}`).join(" "); // prettier-ignore

  /** Return the page on which a figure of a model stands for good: another page may show another model's one day. */
  function pageOf(figure) {
    const data = new URL(figure.dataset.interactive ?? "", document.baseURI);
    const [, root, model] = data.pathname.match(/^(.*\/)data\/([^/]+)\/[^/]+\.json$/) ?? [];
    const page = model && model !== "series" ? new URL(`${root}models/${model}/`, data) : null;
    return page === null || page.pathname === location.pathname ? new URL(location.href) : page;
  }

  /** Return where a figure is seen as it is now; what else the address of this page asks for stays. */
  function addressOf(figure, drawn) {
    const url = pageOf(figure);
    url.searchParams.set(FIGURE, nameOf(figure));
    url.searchParams.set(VIEW, said(drawn.state()));
    url.hash = figure.id;
    return url.href.replaceAll("%3A", ":");
  }

  /** Return a line as CSV has it: quoted where a mark of the format is inside. */
  const field = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const asCsv = (rows) =>
    `${rows.map((row) => row.map((value) => field(String(value ?? ""))).join(",")).join("\r\n")}\r\n`;

  function save(content, kind, name) {
    const blob = content instanceof Blob ? content : new Blob([content], { type: kind });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /** Return of which model a figure is: what the page says of it. */
  function modelOf(figure) {
    if (figure.dataset.model) return figure.dataset.model;
    return figure.dataset.interactive.split("/").at(-2);
  }

  function citation(figure, drawn) {
    const title = figure.querySelector("figcaption strong")?.textContent.trim().replace(/\.$/, "");
    const today = new Date().toISOString().slice(0, 10);
    const what = title ? `“${title}”` : "A figure";
    return `Helix Atlas. ${what}, ${modelOf(figure)}. ${addressOf(figure, drawn)} (seen ${today}).`;
  }

  let menus = 0;

  /** Give a live figure its menu, and show it as the address asks. */
  return (figure, tools, drawn) => {
    const name = nameOf(figure);
    const file = `${modelOf(figure)}-${name}`;
    if (!figure.id && !document.getElementById(`figure-${name}`)) figure.id = `figure-${name}`;
    const menu = document.createElement("details");
    menu.className = "figure-menu";
    const summary = document.createElement("summary");
    summary.className = "md-button";
    summary.textContent = "Take away";
    const list = document.createElement("div");
    list.className = "figure-menu-list";
    const told = document.createElement("output");
    told.setAttribute("aria-live", "polite");
    const text = document.createElement("textarea");
    Object.assign(text, { readOnly: true, rows: 3, hidden: true, id: `figure-menu-${++menus}` });
    text.setAttribute("aria-label", "What was copied");

    const title = () => `${figure.querySelector("figcaption strong")?.textContent ?? name} ${modelOf(figure)}`;
    async function copy(words, what) {
      text.value = words;
      text.hidden = false;
      try {
        await navigator.clipboard.writeText(words);
        told.textContent = `Copied: ${what}.`;
      } catch {
        text.focus();
        text.select();
        told.textContent = `This is the ${what}, to be copied.`;
      }
    }
    const actions = [
      ["SVG", () => save(drawn.svg(title()), "image/svg+xml", `${file}.svg`)],
      ["PNG", async () => save(await drawn.png(), "image/png", `${file}.png`)],
      ["CSV", () => save(asCsv(drawn.csv()), "text/csv", `${file}.csv`)],
      ["Copy citation", () => copy(citation(figure, drawn), "citation")],
      ["Copy address", () => copy(addressOf(figure, drawn), "address of this view")],
    ];
    for (const [label, act] of actions) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "md-button", textContent: label });
      button.addEventListener("click", act);
      list.append(button);
    }
    list.append(told, text);
    menu.append(summary, list);
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      summary.focus();
    });
    tools.insertBefore(menu, tools.querySelector(".found"));

    const asked = new URL(location.href).searchParams;
    if (asked.get(FIGURE) === name && asked.has(VIEW)) drawn.restore(read(asked.get(VIEW)));
  };
})();
