/* Who is alike? Models in a plane of any two of their numbers, from data/alike.json. The address names the two
   (?x=winding&y=size-channels). Without this script the page has the table of the first pair. */

import { ARROWS, describe, spoken } from "./controls.js";
import { element, find, json, onEveryPage, onScheme, part, reason, scrolling, verdict } from "./dom.js";
import { axes, inLines, ink, nearestOf, page as background, pointing, sheet, wide } from "./drawing.js";
import { liveMenu, read } from "./figure-menu.js";
import { decades, ticks, written } from "./numbers.js";

const SHAPES = ["circle", "square", "triangle", "diamond", "fallen"]; // of families; their colours go round apart
const NAME = 11; // pixels of a model's name
const MARK = 5; // pixels from a mark's middle to its edge

/* Marks */

const CORNERS = {
  square: [[-1, -1], [1, -1], [1, 1], [-1, 1]], // prettier-ignore
  triangle: [[0, -1.2], [1.15, 0.9], [-1.15, 0.9]], // prettier-ignore
  diamond: [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]], // prettier-ignore
  fallen: [[0, 1.2], [1.15, -0.9], [-1.15, -0.9]], // prettier-ignore
};

function mark(pen, shape, x, y, look) {
  if (shape === "circle") return pen.circle(x, y, MARK, look);
  const corners = [...CORNERS[shape], CORNERS[shape][0]];
  pen.line(corners.map(([a, b]) => [x + MARK * a, y + MARK * b]), look); // prettier-ignore
}

/** Return colour and shape of every family, in the order met. */
function looks(models, style) {
  const families = [...new Set(models.map(({ family }) => family))];
  const look = (i) => ({ colour: style.colours[i % style.colours.length], shape: SHAPES[i % SHAPES.length] });
  return new Map(families.map((family, i) => [family, look(i)]));
}

/** Draw the families in rows from the top; return how high they are. */
function legend(pen, style, families, left, right) {
  let [x, y] = [left, 10];
  for (const [family, { colour, shape }] of families) {
    const across = 20 + wide(family) + 16;
    if (x > left && x + across > right) [x, y] = [left, y + 19];
    mark(pen, shape, x + 7, y, { fill: colour });
    pen.text(family, x + 18, y, { fill: ink(style), baseline: "middle" });
    x += across;
  }
  return y + 14;
}

/* Axes */

/** Return how an axis is laid out: its ends, its ticks, and which share of the way along a value is. */
function scale(axis, values, about) {
  const lines = [axis.threshold, axis.chance].filter((value) => value !== null && !(axis.log && value <= 0));
  const all = [...values, ...lines].map(axis.log ? Math.log10 : Number);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  const [from, to] = [low - room, high + room];
  const share = (value) => ((axis.log ? Math.log10(value) : value) - from) / (to - from);
  return { lines, share, ticks: axis.log ? decades(from, to) : ticks(from, to, about) };
}

const label = (value) => (Math.abs(value) >= 1e5 ? value.toExponential(0).replace("e+", "e") : written(value, 4));

/* The figure */

/** Return a figure of all models that have both numbers, and how it is drawn. */
function figureOf(numbers, x, y, root) {
  const { style, models } = numbers;
  const families = looks(models, style);
  const seen = models.map((model, i) => ({ ...model, i, values: [x.values[i], y.values[i]] }));
  const shown = seen.filter(({ values }) => values.every((value) => value !== null));
  const kinds = [...families].filter(([family]) => shown.some((model) => model.family === family));
  const plot = element("div", { className: "figure-plot figure-plot--alike" });
  const tools = element("div", { className: "figure-tools" });
  const output = spoken();
  const figure = element("figure", { className: "atlas-figure is-live alike-figure", id: "figure-alike" }, tools, plot);
  Object.assign(figure.dataset, { name: "alike", model: `${shown.length} models` });
  figure.dataset.label = `${shown.length} models: ${x.title} across, ${y.title} up.`;
  figure.append(
    element("figcaption", {}, element("strong", { textContent: `${x.label} against ${y.label}.` }), ` ${caption(x, y)}`),
  );
  let place = null;
  let selected = null;
  /** Return where a model is, in pixels.
   * @type {(model: any) => [number, number]}
   */
  let at = () => [0, 0];

  function names(pen) {
    const places = shown.map((model) => [model, at(model)]);
    const taken = places.map(([, [left, middle]]) => [left - MARK, left + MARK, middle, MARK + 5]);
    for (const [model, [left, middle]] of places) {
      const across = wide(model.title, NAME);
      const tried = [[left + 9, middle], [left - 9 - across, middle], [left - across / 2, middle - 13], [left - across / 2, middle + 13]]; // prettier-ignore
      const free = tried.find(
        ([from, line]) =>
          from >= place.left &&
          from + across <= place.right &&
          line > place.top &&
          line < place.bottom &&
          taken.every(([l, r, m, high]) => from > r + 2 || from + across < l - 2 || Math.abs(line - m) > high + 2),
      );
      if (!free) continue; // its name is shown when it is pointed at, and in the table
      taken.push([free[0], free[0] + across, free[1], 11]);
      pen.text(model.title, ...free, { fill: ink(style), size: NAME, baseline: "middle", halo: background(style) });
    }
  }

  function paint(pen, width, height) {
    const colour = ink(style);
    const top = legend(pen, style, kinds, 8, width) + 6;
    const across = scale(x, shown.map(({ values }) => values[0]), Math.min(8, width / 90)); // prettier-ignore
    const up = scale(y, shown.map(({ values }) => values[1]), height / 60); // prettier-ignore
    const widest = Math.max(...up.ticks.map((value) => wide(label(value))));
    const left = widest + 30;
    const title = inLines(x.title, width - left - 8);
    place = { left, top, right: width - 10, bottom: height - 28 - 15 * title.length };
    const ofX = (value) => place.left + across.share(value) * (place.right - place.left);
    const ofY = (value) => place.bottom - up.share(value) * (place.bottom - place.top);
    at = ({ values }) => [ofX(values[0]), ofY(values[1])];
    const short = wide(y.title) > place.bottom - place.top ? y.label : y.title;
    axes(pen, style, place, { title, ticks: across.ticks, at: ofX, label }, { title: short, ticks: up.ticks, at: ofY, label });
    for (const [axis, { lines }, along] of [[x, across, (v) => [[ofX(v), place.top], [ofX(v), place.bottom]]], [y, up, (v) => [[place.left, ofY(v)], [place.right, ofY(v)]]]]) { // prettier-ignore
      for (const value of lines) {
        const dash = value === axis.threshold ? [7, 4] : [2, 4];
        pen.line(along(value), { stroke: colour, width: 1.5, dash, alpha: 0.7 });
      }
    }
    for (const model of shown) {
      const { colour: fill, shape } = /** @type {{ colour: string, shape: string }} */ (families.get(model.family));
      mark(pen, shape, ...at(model), { fill, stroke: background(style), width: 1 });
    }
    if (selected) pen.circle(...at(selected), MARK + 4, { stroke: colour, width: 2 });
    names(pen);
  }

  const page = sheet(plot, style, paint);
  const words = (model) =>
    [model.title, `${model.family} family`, ...[x, y].map((axis, k) => `${axis.label}: ${said(axis, model.i, model.values[k])}`)].join("\n");
  const of = (model) => {
    const [left, top] = at(model);
    return { model, x: left, y: top, text: words(model) };
  };
  const tell = pointing(
    plot,
    (left, top, reach) => {
      const index = place ? nearestOf(shown.length, (i) => at(shown[i]), left, top, reach) : -1;
      return index < 0 ? null : of(shown[index]);
    },
    (chosen) => name(chosen.model),
  );
  function name(model) {
    selected = model;
    page.draw();
    tell(of(model));
    output.replaceChildren(
      element("a", { href: `${root}models/${model.name}/`, textContent: model.title }),
      `: ${words(model).split("\n").slice(1).join(", ")}.`,
    );
  }
  /** Go from the selected model to the nearest in a direction; begin with the first. */
  function go(down, right) {
    if (!selected) return shown.length && name(shown[0]);
    const [x0, y0] = at(selected);
    const ahead = shown.flatMap((model) => {
      const [dx, dy] = [at(model)[0] - x0, at(model)[1] - y0];
      const [forth, aside] = [right * dx + down * dy, Math.abs(right * dy) + Math.abs(down * dx)];
      return forth > 0.5 ? [[forth + 2 * aside, model]] : [];
    });
    if (ahead.length) name(ahead.reduce((a, b) => (b[0] < a[0] ? b : a))[1]);
  }
  plot.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (ARROWS[event.key]) go(...ARROWS[event.key]);
    else if (event.key === "Enter" && selected) location.href = new URL(`${root}models/${selected.name}/`, document.baseURI).href;
    else return;
    event.preventDefault();
  });
  tools.append(output);
  describe(plot, figure, "arrow keys go from model to model, Enter opens the page of the selected one.");
  const state = () => ({ x: x.id, y: y.id });
  const csv = () => [
    ["model", "family", x.title, y.title],
    ...shown.map(({ title, family, values }) => [title, family, ...values]),
  ];
  const drawn = { ...page, state, csv, restore: () => {}, models: shown, at: (model) => at(model) };
  return Object.assign(figure, { atlas: drawn });
}

/** Return a value with its verdict, in words. */
const said = (axis, i, value) => (axis.verdicts ? `${written(value, 4)}, ${axis.verdicts[i]}` : written(value, 4));

/** Return what the axes are, and what the lines across them. */
function caption(x, y) {
  const parts = [["Across", x], ["Up", y]].map(([where, axis]) => { // prettier-ignore
    const lines = [];
    if (axis.threshold !== null) lines.push(`the claim holds ${axis.sense} ${written(axis.threshold, 4)} (dashed)`);
    else if (axis.verdicts) lines.push("where it holds depends on the model");
    if (axis.chance !== null) lines.push(`chance is at ${written(axis.chance, 4)} (dotted)`);
    const log = axis.log ? ["logarithmic"] : [];
    const statement = axis.statement ? `“${axis.statement}”` : axis.label;
    return `${where}: ${[statement, ...log, ...lines].join("; ")}.`;
  });
  return `Each mark is a model; shape and color show its family. ${parts.join(" ")}`;
}

/* The numbers */

function cell(axis, model, i, root) {
  const made = element("td", { className: "n" });
  if (!axis.verdicts) return Object.assign(made, { textContent: written(axis.values[i], 4) });
  made.append(element("a", { href: `${root}models/${model.name}/#claim-${axis.id}` }, verdict(axis.verdicts[i]), ` ${written(axis.values[i], 4)}`));
  return made;
}

/** Return the table of those that have both numbers, and a line for each number that some models lack. */
function numbersOf({ models }, x, y, root) {
  const head = element("tr");
  const titles = ["Model", "Family", x.title, y.title];
  for (const [i, textContent] of titles.entries()) head.append(element("th", { scope: "col", textContent, className: i > 1 ? "n" : "" }));
  const body = element("tbody");
  const lacking = new Map();
  models.forEach((model, i) => {
    const without = [x, y].filter((axis) => axis.values[i] === null);
    if (without.length) {
      const what = without.length === 1 ? without[0].label : "either";
      lacking.set(what, [...(lacking.get(what) ?? []), model.title]);
      return;
    }
    const name = element("th", { scope: "row" }, element("a", { href: `${root}models/${model.name}/`, textContent: model.title }));
    body.append(element("tr", {}, name, element("td", { textContent: model.family }), cell(x, model, i, root), cell(y, model, i, root)));
  });
  const table = element("table", { className: "plain" });
  table.append(element("caption", { textContent: `${x.title}, and ${y.title}` }), element("thead", {}, head), body);
  return [scrolling(table, "Two numbers of every model"), ...[...lacking].map(([what, who]) => element("p", { textContent: `Without a number for ${what}: ${who.join(", ")}.` }))];
}

/* The page */

/** Return which two numbers the address asks for: by itself, or in the view of the figure. */
function asked(start) {
  const query = new URLSearchParams(location.search);
  const view = query.get("figure") === "alike" ? read(query.get("view") ?? "") : {};
  return ["x", "y"].map((axis, i) => query.get(axis) ?? view[axis] ?? start[i]);
}

/** @type {import("./drawing.js").LiveFigure | null} */
let shownNow = null;

function show(page, numbers) {
  const { root } = page.dataset;
  const form = page.querySelector("form");
  const [status, where] = ["#alike-status", "#alike-figure"].map((id) => page.querySelector(id));
  const chosen = asked(numbers.start);
  const [x, y] = chosen.map((id) => numbers.axes.find((axis) => axis.id === id));
  if (x) form.elements.x.value = x.id;
  if (y) form.elements.y.value = y.id;
  if (!x || !y) {
    const unknown = chosen[x ? 1 : 0];
    status.textContent = `There is no number called “${unknown}”; choose two from the lists.`;
    where.replaceChildren();
    return;
  }
  const figure = figureOf(numbers, x, y, root);
  const drawn = figure.atlas.models.length;
  const all = numbers.models.length;
  status.textContent = drawn
    ? `${drawn} of ${all} models have both numbers${drawn < all ? "; the others are named below the table" : ""}.`
    : "No model has both numbers.";
  where.replaceChildren(...(drawn ? [figure] : []));
  shownNow = drawn ? figure : null;
  part("#alike-numbers", HTMLElement).replaceChildren(...numbersOf(numbers, x, y, root));
  if (drawn) liveMenu(figure, figure.atlas);
}

function options(select, axes) {
  const groups = new Map();
  for (const axis of axes) groups.set(axis.group, [...(groups.get(axis.group) ?? []), axis]);
  for (const [group, inside] of groups) {
    const choices = inside.map(({ id, label }) => element("option", { value: id, textContent: label }));
    select.append(element("optgroup", { label: group }, ...choices));
  }
}

async function enhance() {
  const page = find("#alike:not([data-enhanced])", HTMLElement);
  if (!page) return;
  page.dataset.enhanced = "";
  page.hidden = false;
  const form = part("form", HTMLFormElement, page);
  const selects = ["x", "y"].map((name) => part(`[name=${name}]`, HTMLSelectElement, form));
  const values = () => selects.map((select) => select.value);
  let numbers;
  try {
    numbers = await json(new URL(page.dataset.numbers ?? "", document.baseURI));
  } catch (problem) {
    form.hidden = true;
    part("#alike-status", HTMLElement, page).textContent = `The numbers could not be loaded: ${reason(problem)}.`;
    return;
  }
  part("#alike-plain", HTMLElement).hidden = true;
  for (const select of selects) options(select, numbers.axes);
  const choose = (/** @type {string[]} */ [x, y]) => {
    const query = `?${new URLSearchParams({ x, y })}`;
    if (query !== location.search) history.pushState(history.state, "", query);
    show(page, numbers);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => choose(values()));
  part("#alike-swap", HTMLElement, page).addEventListener("click", () => choose(values().reverse()));
  const back = () => (page.isConnected ? show(page, numbers) : removeEventListener("popstate", back));
  addEventListener("popstate", back);
  onScheme(() => page.isConnected && shownNow?.atlas.draw());
  show(page, numbers);
}

onEveryPage(enhance);
