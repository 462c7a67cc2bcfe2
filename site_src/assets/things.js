/* Things with an address: ?channel=138, ?head=0.7, ?token=' the' or ?position=12 behind a model's page opens a panel
   with all that stored results know of it. What is known lies in data/<model>/things.json and things-tokens.json, which
   are fetched when a panel opens. Whatever draws a point of a thing may ask for its panel by an event on the document:
   atlas:pick, with {kind, index} and, for heads, {layer, head}. Without this script links lead to a list of things. */
"use strict";

(() => {
  const ROOT = new URL("..", document.currentScript.src);
  const SVG = "http://www.w3.org/2000/svg";
  const KINDS = ["channel", "head", "token", "position"];
  const COVER = { largest: "the largest first", strongest: "the strongest first, whichever its sign" };
  const fetched = new Map();
  let panel = null; // the open dialog
  let origin = null; // what had the focus before it
  let pushed = false; // whether this panel's address was put upon the one before

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  function drawn(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /** Fetch a data file of a model, once. */
  function data(model, file) {
    const url = new URL(`data/${encodeURIComponent(model)}/${file}.json`, ROOT).href;
    if (!fetched.has(url)) {
      const asked = fetch(url).then((answer) => {
        if (!answer.ok) throw new Error(`${answer.status} for ${url}`);
        return answer.json().then(window.atlasPacked);
      });
      asked.catch(() => fetched.delete(url));
      fetched.set(url, asked);
    }
    return fetched.get(url);
  }

  const isNumber = (value) => typeof value === "number";
  const count = (value) => value.toLocaleString("en");

  /** Return a value as pages write it: a true minus sign, yes or no, a dash for an absent one. */
  function written(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return String(value).replace(/^-/, "−").replace("e-", "e−");
  }

  /* Which thing is meant. */

  /** Return a text as token names are spelled: what can't be seen as control pictures, a backslash doubled. */
  const readable = (text) =>
    [...text].map((c) => (c <= " " ? String.fromCodePoint(0x2400 + c.codePointAt(0)) : c === "\\" ? "\\\\" : c)).join("");

  /** Return a text without the quotes around it, null where there are none. */
  const unquoted = (text) => /^(['"])([^]*)\1$/.exec(text)?.[2] ?? null;

  function outside(things, kind, model) {
    const last = count(things.count - 1);
    return `${model.title} has ${kind}s 0 to ${last}.`;
  }

  function indexOfHead(asked, model) {
    const [, layer, head] = /^L?(\d+)[.,H](\d+)$/i.exec(asked.trim()) ?? [];
    const [layers, heads] = [model.n_layer, model.n_head];
    if (!heads) throw new RangeError(`Nothing is known of heads of ${model.title}.`);
    if (layer === undefined) throw new RangeError(`“${asked}” names no head: heads are named by layer and head, as 0.7 or L0H7.`);
    if (layer >= layers || head >= heads)
      throw new RangeError(`${model.title} has no head L${layer}H${head}: its heads are L0H0 to L${layers - 1}H${heads - 1}.`);
    return Number(layer) * heads + Number(head);
  }

  function indexOfToken(asked, things, model) {
    const text = unquoted(asked) ?? asked;
    const spelled = [text, readable(text)].map((name) => things.names?.indexOf(name) ?? -1).find((at) => at >= 0);
    if (spelled !== undefined) return things.ids[spelled];
    throw new RangeError(
      `No token of ${model.title} whose name is kept here is spelled “${readable(text)}”. ` +
        (things.names ? `The names of ${count(things.names.length)} tokens are kept; any other can be asked for by its id.` : "None of its tokens' names are known here; ask by an id."),
    );
  }

  /** Return the index of a thing that is asked for. Throws RangeError, with a sentence, where there is none. */
  function indexOf(kind, asked, things, model) {
    if (kind === "head") return indexOfHead(asked, model);
    const text = asked.trim();
    if (!/^\d+$/.test(text)) {
      if (kind === "token") return indexOfToken(asked, things, model);
      throw new RangeError(`“${asked}” is no ${kind}: it takes a number. ${things.count ? outside(things, kind, model) : ""}`);
    }
    const index = Number(text);
    if (things.count && index >= things.count) throw new RangeError(`There is no ${kind} ${text}: ${outside(things, kind, model)}`);
    return index;
  }

  const nameOf = (things, index) => things.names?.[things.ids.indexOf(index)] ?? null;

  /* What is known of it. */

  /** Return a column's value for a thing, undefined where it has none. */
  function valueOf(column, things, index) {
    const at = column.ids === undefined ? index : things.id_lists[column.ids].indexOf(index);
    return column.values[at];
  }

  /** Return which place a value has among those of its column, and of how many; null where they have no order. */
  function placeOf(column, value) {
    if (!column.order || !isNumber(value)) return null;
    const size = column.order === "strongest" ? Math.abs : (x) => x;
    const all = column.values.filter(isNumber);
    return { rank: 1 + all.filter((other) => size(other) > size(value)).length, of: all.length, says() { return `${count(this.rank)} of ${count(this.of)}`; } }; // prettier-ignore
  }
  const rankOf = (column, value) => placeOf(column, value)?.says() ?? "";

  /** Return links to the finding, and to the figure, that say more. */
  function more({ finding, figure }, known) {
    const { title, figures } = known.findings[finding];
    const page = new URL(`models/${known.model.name}/`, ROOT);
    const link = (hash, text) => element("a", { href: `${page.href}#${hash}`, textContent: text });
    const links = [link(finding, title)];
    if (figure && figures[figure]) links.push(", ", link(`figure-${figure}`, "figure"));
    return element("span", { className: "thing-more" }, ...links);
  }

  function table(known, things, index) {
    const found = things.columns.map((column) => [column, valueOf(column, things, index)]);
    const rows = found.filter(([, value]) => value !== undefined && value !== null);
    if (!rows.length) return null;
    const body = element("tbody");
    for (const [column, value] of rows) {
      const shown = element("td", { className: "n" }, column.leads ? leading(column.leads, value, things) : written(value));
      const rank = element("td", { className: "n", textContent: rankOf(column, value) });
      if (column.order) rank.title = COVER[column.order];
      const label = element("th", { scope: "row", textContent: column.says });
      body.append(element("tr", {}, label, shown, rank, element("td", {}, more(column, known))));
    }
    const heads = ["What", "Value", "Rank", "More"].map((text) => element("th", { scope: "col", textContent: text }));
    const ranks = element("p", {
      textContent: "Ranks count from the largest; of correlations, means and values in a channel from the strongest, whichever its sign.",
    });
    const made = element("table", { className: "plain" }, element("thead", {}, element("tr", {}, ...heads)), body);
    return element("div", {}, ranks, scrolling(made, "What is known of it"));
  }

  function scrolling(content, label) {
    const box = element("div", { className: "atlas-scroll", tabIndex: 0 }, content);
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    return box;
  }

  /** Return a link to another thing's panel. */
  function leading(kind, index, things) {
    const name = nameOf(things, index);
    const link = element("a", { href: `?${kind}=${index}#things`, textContent: index });
    return name === null ? link : element("span", {}, link, " ", fenced(name));
  }

  /** Return a token's name so that it can't reorder what stands around it. */
  const fenced = (name) => element("bdi", {}, element("code", { textContent: name }));

  function notes(known, things, index) {
    const said = (things.notes[index] ?? []).map((note) => [note.says, note]);
    for (const group of things.groups) said.push([group.ids.includes(index) ? group.says : group.otherwise, group]);
    if (!said.length) return null;
    return element("ul", {}, ...said.map(([says, from]) => element("li", {}, `${says} `, more(from, known))));
  }

  /* Lines: a small drawing of each group of them, and their numbers as a table. */

  const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [360, 170, 46, 34, 10];

  function drawings(known, things, index) {
    const groups = Map.groupBy ? Map.groupBy(things.lines, (line) => line.drawing) : grouped(things.lines);
    return [...groups].flatMap(([title, lines]) => drawing(title, curves(lines, index), known));
  }

  function grouped(lines) {
    const groups = new Map();
    for (const line of lines) groups.set(line.drawing, [...(groups.get(line.drawing) ?? []), line]);
    return groups;
  }

  /** Return what is drawn of a thing: its own lines, and faint ones of what is usual. */
  function curves(lines, index) {
    return lines.flatMap((line, i) => {
      const own = { ...line, ys: line.values[index], style: i, faint: false };
      return line.usual ? [own, { ...line, says: line.usual_says, ys: line.usual, style: i, faint: true }] : [own];
    });
  }

  function drawing(title, lines, known) {
    const xs = lines.flatMap((line) => line.at);
    const ys = lines.flatMap((line) => line.ys).filter(isNumber);
    if (!ys.length) return [];
    const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
    const [y0, y1] = [Math.min(0, ...ys), Math.max(0, ...ys) || 1];
    const x = (value) => LEFT + ((value - x0) / (x1 - x0 || 1)) * (WIDTH - LEFT - 10);
    const y = (value) => HEIGHT - BOTTOM - ((value - y0) / (y1 - y0 || 1)) * (HEIGHT - BOTTOM - TOP);
    const label = `${title}: ${lines.map((line) => line.says).join("; ")}. The numbers are in the table below.`;
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "thing-drawing", role: "img", "aria-label": label });
    const text = (at, height, anchor, said) =>
      svg.append(drawn("text", { x: at, y: height, "text-anchor": anchor, class: "thing-label" }, said));
    svg.append(drawn("path", { d: `M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - 10}`, class: "thing-axis" }));
    if (y0 < 0) svg.append(drawn("path", { d: `M${LEFT},${y(0)}H${WIDTH - 10}`, class: "thing-axis thing-zero" }));
    for (const value of new Set([y0, y1])) text(LEFT - 5, y(value) + 4, "end", written(Number(value.toPrecision(3))));
    for (const value of new Set([x0, ...(x0 < 0 ? [0] : []), x1])) text(x(value), HEIGHT - BOTTOM + 14, "middle", written(value));
    text((LEFT + WIDTH) / 2, HEIGHT - 4, "middle", lines[0].across);
    for (const line of lines) {
      const points = line.at.map((at, i) => [at, line.ys[i]]).filter(([, value]) => isNumber(value));
      const path = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
      svg.append(drawn("polyline", { points: path, class: styleOf(line) }));
    }
    const legend = element("ul", { className: "thing-legend" }, ...lines.map((line) => legendOf(line, known)));
    return [element("h3", { textContent: title }), svg, legend, numbers(title, lines)];
  }

  const styleOf = (line) => `thing-line thing-line--${line.style % 5}${line.faint ? " thing-line--usual" : ""}`;

  function legendOf(line, known) {
    const sample = drawn("svg", { viewBox: "0 0 24 8", width: 24, height: 8, "aria-hidden": "true" });
    sample.append(drawn("path", { d: "M0,4H24", class: styleOf(line) }));
    return element("li", {}, sample, ` ${line.says} `, line.faint ? "" : more(line, known));
  }

  function numbers(title, lines) {
    const places = [...new Set(lines.flatMap((line) => line.at))].sort((a, b) => a - b);
    const heads = [lines[0].across, ...lines.map((line) => line.says)];
    const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", className: "n", textContent: text })));
    const rows = places.map((place) => {
      const cells = lines.map((line) => element("td", { className: "n", textContent: written(line.ys[line.at.indexOf(place)]) }));
      return element("tr", {}, element("th", { scope: "row", className: "n", textContent: written(place) }), ...cells);
    });
    const made = element("table", { className: "plain" }, element("thead", {}, head), element("tbody", {}, ...rows));
    return element("details", {}, element("summary", { textContent: "In numbers" }), scrolling(made, `${title}, in numbers`));
  }

  /* The panel. */

  const titleOf = (kind, index, model) =>
    kind === "head" ? `Head L${Math.floor(index / model.n_head)}H${index % model.n_head}` : `${kind[0].toUpperCase()}${kind.slice(1)} ${index}`;

  /** Return how a thing is asked for in an address. */
  const askedAs = (kind, index, model) => (kind === "head" ? `${Math.floor(index / model.n_head)}.${index % model.n_head}` : String(index));

  /** Fill the panel with what is known of one thing; what can't be told is a sentence. */
  async function fill(made, model, kind, asked) {
    const [heading, content] = [made.querySelector("h2"), made.querySelector(".thing-content")];
    heading.textContent = `${kind[0].toUpperCase()}${kind.slice(1)} ${asked}`;
    content.replaceChildren(element("p", { textContent: "Fetching what is known of it…" }));
    const say = (text) => content.replaceChildren(element("p", { textContent: text }));
    try {
      const known = await data(model, "things");
      const things = kind === "token" ? (await data(model, "things-tokens")).token : known[kind];
      if (made !== panel || made.dataset.asked !== `${kind}=${asked}`) return; // another one was asked for meanwhile
      const index = indexOf(kind, asked, things, known.model);
      const name = kind === "token" ? nameOf(things, index) : null;
      heading.replaceChildren(titleOf(kind, index, known.model), ...(name === null ? [] : [" ", fenced(name)]), ` of ${known.model.title}`);
      content.replaceChildren(...told(known, things, kind, index));
    } catch (error) {
      if (made !== panel) return;
      say(error instanceof RangeError ? error.message : "What is known of it could not be fetched; is there a connection?");
    }
  }

  function told(known, things, kind, index) {
    const said = kind === "channel" ? window.atlasInShort?.(things, index, { valueOf, placeOf, written }) : "";
    const short = said ? element("p", { className: "thing-short", textContent: said }) : null;
    const parts = [short, notes(known, things, index), table(known, things, index), ...drawings(known, things, index)];
    const there = parts.filter((part) => part !== null);
    if (!there.length) there.push(element("p", { textContent: `No stored result says anything of this ${kind}.` }));
    else if (kind === "token" && !things.columns.some((column) => valueOf(column, things, index) !== undefined))
      there.push(element("p", { textContent: "Norms, frequencies and neighbours are kept for samples of a large vocabulary; this token is in none of them." }));
    if (kind === "token" && things.columns.length)
      there.push(element("p", { textContent: "Which tokens are nearest to it is not stored, only how near the nearest one is." }));
    if (things.unknown.length) {
      const why = things.unknown.map((note) => element("li", {}, `${note.says} `, more(note, known)));
      there.push(element("h3", { textContent: "Not known" }), element("ul", {}, ...why));
    }
    const ask = (i) => askedAs(kind, i, known.model);
    const turn = (text, to, there) => {
      const button = element("button", { type: "button", className: "md-button", textContent: text, disabled: !there });
      button.addEventListener("click", () => open(known.model.name, kind, ask(to)));
      return button;
    };
    const address = new URL(`models/${known.model.name}/?${kind}=${ask(index)}`, ROOT);
    const own = element("a", { href: address.href, textContent: "Address of this panel" });
    const last = things.count === null || index < things.count - 1;
    return [...there, element("p", { className: "thing-steps" }, turn("Previous", index - 1, index > 0), turn("Next", index + 1, last), own)];
  }

  function made() {
    const close = element("button", { type: "button", className: "thing-close", title: "Close" });
    close.setAttribute("aria-label", "Close this panel");
    close.append("×");
    const heading = element("h2", { id: "thing-title", tabIndex: -1 });
    const content = element("div", { className: "thing-content" });
    content.setAttribute("aria-live", "polite");
    const dialog = element("dialog", { className: "thing-panel md-typeset" }, close, heading, content);
    dialog.setAttribute("aria-labelledby", "thing-title");
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
    dialog.addEventListener("close", () => closed(dialog));
    return dialog;
  }

  /** Open the panel on a thing, or turn the open one to it; the address says so where it is this model's page. */
  function open(model, kind, asked, { remember = true } = {}) {
    const before = panel?.open ? panel : null;
    if (remember && pageModel() === model) {
      const url = withThing(kind, asked);
      if (url.href !== location.href) history[before ? "replaceState" : "pushState"](history.state, "", url);
      if (!before) pushed = true;
    }
    if (!before) {
      origin = document.activeElement;
      panel = made();
      document.body.append(panel);
    }
    panel.dataset.asked = `${kind}=${asked}`;
    const filled = fill(panel, model, kind, asked);
    if (!before) panel.showModal();
    panel.querySelector("h2").focus();
    panel.scrollTop = 0;
    return filled;
  }

  /** Leave the panel: it goes, and what it put into the address. */
  function closed(dialog) {
    dialog.remove();
    if (dialog !== panel) return; // another one is open by now
    const upon = pushed;
    [panel, pushed] = [null, false];
    origin?.focus({ preventScroll: true });
    if (!asked()) return;
    if (upon) history.back();
    else history.replaceState(history.state, "", withThing());
  }

  /* Addresses. */

  const pageModel = () => document.querySelector("[data-things]")?.dataset.things;

  /** Return the thing that the address asks for, null where it asks for none. */
  function asked() {
    const query = new URLSearchParams(location.search);
    const kind = KINDS.find((name) => query.get(name));
    return kind ? [kind, query.get(kind)] : null;
  }

  /** Return this page's address with a thing in it, or with none. */
  function withThing(kind, what) {
    const url = new URL(location);
    for (const name of KINDS) url.searchParams.delete(name);
    if (kind) url.searchParams.set(kind, what);
    return url;
  }

  /** Show what the address asks for. */
  function follow() {
    const [model, thing] = [pageModel(), asked()];
    if (model && thing) {
      if (panel?.dataset.asked !== thing.join("=")) open(model, ...thing, { remember: false });
    } else if (panel) {
      pushed = false;
      panel.close();
    }
  }

  function entered() {
    pushed = false;
    const form = document.querySelector(".things-form");
    if (form) form.hidden = false;
    follow();
  }

  /** Return the thing that a link leads to on this very page, null for any other link. */
  function thingOf(link) {
    const url = new URL(link.href);
    if (url.origin + url.pathname !== location.origin + location.pathname) return null;
    const kind = KINDS.find((name) => url.searchParams.get(name));
    return kind ? [kind, url.searchParams.get(kind)] : null;
  }

  // Before the theme hears of it, which would look for a page of this address.
  document.addEventListener(
    "click",
    (event) => {
      const link = event.target.closest?.("a[href]");
      if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const within = panel?.contains(link);
      const thing = pageModel() ? thingOf(link) : null;
      if (thing) {
        event.preventDefault();
        event.stopPropagation();
        open(pageModel(), ...thing);
      } else if (within) leaveFor(event, link);
    },
    { capture: true },
  );

  /** Follow a link out of the panel: what it leads to must be seen, so the panel goes first. */
  function leaveFor(event, link) {
    const url = new URL(link.href);
    if (url.pathname !== location.pathname) return panel.close();
    event.preventDefault();
    event.stopPropagation();
    history.replaceState(history.state, "", withThing());
    panel.close();
    location.hash = url.hash;
  }

  document.addEventListener("submit", (event) => {
    if (!event.target.matches(".things-form")) return;
    event.preventDefault();
    const { kind, asked: which } = event.target.elements;
    open(pageModel(), kind.value, which.value);
  });

  document.addEventListener("atlas:pick", ({ target, detail }) => {
    const from = target.closest?.("[data-interactive], [data-live]")?.dataset;
    const model = detail.model ?? /(?:^|\/)data\/([^/]+)\//.exec(from?.interactive ?? from?.live ?? "")?.[1] ?? pageModel();
    if (!model || location.protocol === "file:" || !KINDS.includes(detail.kind)) return;
    const named = detail.kind === "head" && isNumber(detail.layer) && isNumber(detail.head);
    if (named || detail.kind !== "head") return void open(model, detail.kind, named ? `${detail.layer}.${detail.head}` : String(detail.index));
    data(model, "things").then(
      (known) => open(model, "head", askedAs("head", detail.index, known.model)),
      () => open(model, "head", String(detail.index)),
    );
  });

  addEventListener("popstate", follow);
  if (window.document$) window.document$.subscribe(() => setTimeout(entered)); // the theme has the page
  else entered();
})();
