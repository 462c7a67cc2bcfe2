/* Entities with an address: ?channel=138, ?head=0.7, ?token=' the' or ?position=12 behind a model's page opens a panel
   with all that stored results know of it. What is known lies in data/<model>/things.json and things-tokens.json, which
   are fetched when a panel opens. Whatever draws a point of an entity may ask for its panel by an event on the document:
   atlas:pick, with {kind, index} and, for heads, {layer, head}. Without this script links lead to a list of entities. */

import { around, element, find, json, onEveryPage, root, scrolling } from "./dom.js";
import { KINDS, askedAs, indexOf, nameOf, rankOf, titleOf, valueOf } from "./entity-data.js";
import { drawings } from "./entity-lines.js";
import { inShort } from "./in-short.js";
import { inFull, isNumber } from "./numbers.js";

const COVER = { largest: "the largest first", strongest: "the strongest first, whichever its sign" };
let panel = null; // the open dialog
let origin = null; // what had the focus before it
let pushed = false; // whether this panel's address was put upon the one before

/** Fetch a data file of a model. */
const data = (model, file) => json(new URL(`data/${encodeURIComponent(model)}/${file}.json`, root()));

/* What is known of it. */

/** Return links to the finding, and to the figure, that say more. */
function more({ finding, figure }, known) {
  const { title, figures } = known.findings[finding];
  const page = new URL(`models/${known.model.name}/`, root());
  const link = (hash, text) => element("a", { href: `${page.href}#${hash}`, textContent: text });
  /** @type {(Node | string)[]} */
  const links = [link(finding, title)];
  if (figure && figures[figure]) links.push(", ", link(`figure-${figure}`, "figure"));
  return element("span", { className: "entity-more" }, ...links);
}

function table(known, entities, index) {
  const found = entities.columns.map((column) => [column, valueOf(column, entities, index)]);
  const rows = found.filter(([, value]) => value !== undefined && value !== null);
  if (!rows.length) return null;
  const body = element("tbody");
  for (const [column, value] of rows) {
    const shown = element("td", { className: "n" }, column.leads ? leading(column.leads, value, entities) : inFull(value));
    const rank = element("td", { className: "n", textContent: rankOf(column, value) });
    if (column.order) rank.title = COVER[column.order];
    const label = element("th", { scope: "row", textContent: column.says });
    body.append(element("tr", {}, label, shown, rank, element("td", {}, more(column, known))));
  }
  const heads = ["What", "Value", "Rank", "More"].map((text) => element("th", { scope: "col", textContent: text }));
  const ranks = element("p", {
    textContent: "Ranks count from the largest value; for correlations, means and values in a channel, from the largest absolute value.",
  });
  const made = element("table", { className: "plain" }, element("thead", {}, element("tr", {}, ...heads)), body);
  return element("div", {}, ranks, scrolling(made, "What is known of it"));
}

/** Return a link to another entity's panel. */
function leading(kind, index, entities) {
  const name = nameOf(entities, index);
  const link = element("a", { href: `?${kind}=${index}#things`, textContent: index });
  return name === null ? link : element("span", {}, link, " ", fenced(name));
}

/** Return a token's name so that it can't reorder what stands around it. */
const fenced = (name) => element("bdi", {}, element("code", { textContent: name }));

/** Return links to the entities that are in other models what this one is here; null where there are none. */
function others(kind, known, role, like) {
  const there = (like[role ?? ""] ?? []).filter((one) => one.model !== known.model.name);
  if (!there.length) return null;
  const links = there.flatMap((one, i) => {
    const href = new URL(`models/${one.model}/?${kind}=${one.index}`, root()).href;
    return [i ? " · " : "", element("a", { href, textContent: `${one.title}: ${kind} ${one.index}` }), one.verdict ? ` (${one.verdict})` : ""];
  });
  const judged = there.some((one) => one.verdict);
  const lead = `Counterparts in other models${judged ? ", and whether the claim holds there" : ""}: `;
  return element("div", { className: "entity-others" }, lead, ...links);
}

function notes(kind, known, entities, index, like) {
  const said = (entities.notes[index] ?? []).map((note) => [note.says, note]);
  for (const group of entities.groups) said.push([group.ids.includes(index) ? group.says : group.otherwise, group]);
  if (!said.length) return null;
  const listed = said.map(([says, from]) => element("li", {}, `${says} `, more(from, known), others(kind, known, from.role, like)));
  return element("ul", {}, ...listed);
}

/* The panel. */

/** Fill the panel with what is known of one entity; what goes wrong is a sentence. */
async function fill(made, model, kind, asked) {
  const [heading, content] = [made.querySelector("h2"), made.querySelector(".entity-content")];
  heading.textContent = `${kind[0].toUpperCase()}${kind.slice(1)} ${asked}`;
  content.replaceChildren(element("p", { textContent: "Fetching what is known of it…" }));
  const say = (text) => content.replaceChildren(element("p", { textContent: text }));
  try {
    const [known, like] = await Promise.all([data(model, "things"), json(new URL("data/like.json", root())).catch(() => ({}))]);
    const entities = kind === "token" ? (await data(model, "things-tokens")).token : known[kind];
    if (made !== panel || made.dataset.asked !== `${kind}=${asked}`) return; // another one was asked for meanwhile
    const index = indexOf(kind, asked, entities, known.model);
    const name = kind === "token" ? nameOf(entities, index) : null;
    heading.replaceChildren(titleOf(kind, index, known.model), ...(name === null ? [] : [" ", fenced(name)]), ` of ${known.model.title}`);
    content.replaceChildren(...contentOf(known, entities, kind, index, like));
  } catch (error) {
    if (made !== panel) return;
    say(error instanceof RangeError ? error.message : "What is known of it could not be fetched; is there a connection?");
  }
}

function contentOf(known, entities, kind, index, like) {
  const said = kind === "channel" ? inShort(entities, index) : "";
  const short = said ? element("p", { className: "entity-short", textContent: said }) : null;
  const parts = [short, notes(kind, known, entities, index, like), table(known, entities, index), ...drawings(entities.lines, index, (line) => more(line, known))];
  const there = parts.filter((part) => part !== null);
  if (!there.length) there.push(element("p", { textContent: `No stored result mentions this ${kind}.` }));
  else if (kind === "token" && !entities.columns.some((column) => valueOf(column, entities, index) !== undefined))
    there.push(element("p", { textContent: "Norms, frequencies and neighbors of a large vocabulary are stored for samples; this token is in none of them." }));
  if (kind === "token" && entities.columns.length)
    there.push(element("p", { textContent: "Only the distance to the nearest token is stored, not which tokens are nearest." }));
  if (entities.unknown.length) {
    const why = entities.unknown.map((note) => element("li", {}, `${note.says} `, more(note, known)));
    there.push(element("h3", { textContent: "Not known" }), element("ul", {}, ...why));
  }
  const ask = (i) => askedAs(kind, i, known.model);
  const turn = (text, to, there) => {
    const button = element("button", { type: "button", className: "md-button", textContent: text, disabled: !there });
    button.addEventListener("click", () => open(known.model.name, kind, ask(to)));
    return button;
  };
  const address = new URL(`models/${known.model.name}/?${kind}=${ask(index)}`, root());
  const own = element("a", { href: address.href, textContent: "Address of this panel" });
  const last = entities.count === null || index < entities.count - 1;
  return [...there, element("p", { className: "entity-steps" }, turn("Previous", index - 1, index > 0), turn("Next", index + 1, last), own)];
}

function made() {
  const close = element("button", { type: "button", className: "entity-close", title: "Close" });
  close.setAttribute("aria-label", "Close this panel");
  close.append("×");
  const heading = element("h2", { id: "entity-title", tabIndex: -1 });
  const content = element("div", { className: "entity-content" });
  content.setAttribute("aria-live", "polite");
  const dialog = element("dialog", { className: "entity-panel md-typeset" }, close, heading, content);
  dialog.setAttribute("aria-labelledby", "entity-title");
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
  dialog.addEventListener("close", () => closed(dialog));
  return dialog;
}

/** Open the panel on an entity, or turn the open one to it; the address says so where it is this model's page. */
function open(model, kind, asked, { remember = true } = {}) {
  const before = panel?.open ? panel : null;
  if (remember && pageModel() === model) {
    const url = withEntity(kind, asked);
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
  else history.replaceState(history.state, "", withEntity());
}

/* Addresses. */

const pageModel = () => find("[data-things]", HTMLElement)?.dataset.things;

/** Return the entity that the address asks for, null where it asks for none. */
function asked() {
  const query = new URLSearchParams(location.search);
  const kind = KINDS.find((name) => query.get(name));
  return kind ? [kind, query.get(kind)] : null;
}

/** Return this page's address with an entity in it, or with none. */
function withEntity(kind, what) {
  const url = new URL(location.href);
  for (const name of KINDS) url.searchParams.delete(name);
  if (kind) url.searchParams.set(kind, what);
  return url;
}

/** Show what the address asks for. */
function follow() {
  const [model, entity] = [pageModel(), asked()];
  if (model && entity) {
    if (panel?.dataset.asked !== entity.join("=")) open(model, ...entity, { remember: false });
  } else if (panel) {
    pushed = false;
    panel.close();
  }
}

function entered() {
  pushed = false;
  const form = find(".things-form", HTMLElement);
  if (form) form.hidden = false;
  follow();
}

/** Return the entity that a link leads to on this very page, null for any other link. */
function entityOf(link) {
  const url = new URL(link.href);
  if (url.origin + url.pathname !== location.origin + location.pathname) return null;
  const kind = KINDS.find((name) => url.searchParams.get(name));
  return kind ? [kind, url.searchParams.get(kind)] : null;
}

/** Follow a link out of the panel: what it leads to must be seen, so the panel goes first. */
function leaveFor(event, link) {
  const url = new URL(link.href);
  if (url.pathname !== location.pathname) return panel.close();
  event.preventDefault();
  event.stopPropagation();
  history.replaceState(history.state, "", withEntity());
  panel.close();
  location.hash = url.hash;
}

/** Open panels as addresses, links, forms and points of figures ask for them. */
export function startEntities() {
  // Before the theme hears of it, which would look for a page of this address.
  document.addEventListener(
    "click",
    (event) => {
      const link = around(event, "a[href]", HTMLAnchorElement);
      if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
      const within = panel?.contains(link);
      const entity = pageModel() ? entityOf(link) : null;
      if (entity) {
        event.preventDefault();
        event.stopPropagation();
        open(pageModel(), ...entity);
      } else if (within) leaveFor(event, link);
    },
    { capture: true },
  );

  document.addEventListener("submit", (event) => {
    const form = around(event, ".things-form", HTMLFormElement);
    if (!form) return;
    event.preventDefault();
    const [kind, which] = ["kind", "asked"].map((name) => String(new FormData(form).get(name)));
    open(pageModel(), kind, which);
  });

  document.addEventListener("atlas:pick", (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    const from = around(event, "[data-interactive], [data-live]", HTMLElement)?.dataset;
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
  onEveryPage(entered);
}
