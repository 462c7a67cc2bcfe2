/* Two models side by side, from the JSON that the site publishes: models.json, claims.json and <model>/findings.json
   in its folder data/. */

import { describe, spoken } from "./controls.js";
import { HOW_TO_TURN, scaled, turnable } from "./curve.js";
import { element, find, json, onEveryPage, onScheme, part, reason, scrolling, verdict } from "./dom.js";
import { liveMenu } from "./figure-menu.js";
import { asInTables as number } from "./numbers.js";

const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));

function judged(claim, model, root) {
  if (!claim) return element("td", { textContent: "not judged" });
  const link = element("a", { href: `${root}models/${model.name}/#claim-${claim.id}`, title: claim.answer }, verdict(claim.verdict));
  const unit = element("span", { className: "unit", textContent: claim.unit ? ` ${claim.unit}` : "" });
  return element("td", {}, link, ...(claim.value === null ? [] : [` ${number(claim.value)}`, unit]));
}

// Counts of what one model has more of than another: their difference says nothing.
const COUNTS = ["layers", "rank of the channel", "tokens", "channels"];

function difference(one, other) {
  if (one?.value == null || other?.value == null || COUNTS.includes(one.unit)) return "–";
  return signed(other.value - one.value);
}

function claimsTable(sides, findings, only, root) {
  const [a, b] = sides.map(({ results }) => new Map(results.claims.map((claim) => [claim.id, claim])));
  const titles = sides.map(({ model }) => model.title);
  const head = element("thead", {}, element("tr"));
  for (const title of ["Claim", titles[0], titles[1], "Second minus first"]) {
    head.rows[0].append(element("th", { scope: "col", textContent: title }));
  }
  const table = element("table", { className: "compare-claims" });
  table.append(element("caption", { textContent: `Claims in ${titles[0]} and in ${titles[1]}` }), head);
  let differing = 0;
  let together = 0;
  const isTested = (claim) => claim !== undefined && claim.verdict !== "untested";
  for (const finding of findings) {
    const body = element("tbody");
    const heading = element("th", { scope: "rowgroup", colSpan: 4 });
    heading.append(element("a", { href: `${root}findings/${finding.name}/`, textContent: finding.title }));
    body.append(element("tr", {}, heading));
    for (const { id, statement } of finding.claims) {
      const both = isTested(a.get(id)) && isTested(b.get(id));
      const differs = both && a.get(id).verdict !== b.get(id).verdict;
      together += Number(both);
      differing += Number(differs);
      if (only && !differs) continue;
      const row = element("tr", { className: differs ? "differs" : "" });
      row.append(element("th", { scope: "row", textContent: statement }));
      row.append(judged(a.get(id), sides[0].model, root), judged(b.get(id), sides[1].model, root));
      row.append(element("td", { className: "n", textContent: difference(a.get(id), b.get(id)) }));
      body.append(row);
    }
    if (body.rows.length > 1) table.append(body);
  }
  const scroll = scrolling(table, "Claims of both models", "atlas-scroll compare-scroll");
  const total = findings.reduce((sum, finding) => sum + finding.claims.length, 0);
  const apart = `; ${total - together} of ${total} are not tested in both`;
  const said = `The verdicts differ in ${differing} of the ${together} claims tested in both${together < total ? apart : ""}.`;
  return [element("p", { textContent: said }), scroll];
}

/** Return a figure of both curves in one frame, and how it is drawn; null where one model has none.
 * @returns {Promise<import("./drawing.js").LiveFigure | null>}
 */
async function helices(sides, root) {
  const curves = sides.map(({ model }) => model.pictures.helix?.data);
  if (curves.some((data) => !data)) return null;
  const data = await Promise.all(curves.map((path) => json(new URL(`${root}${path}`, document.baseURI))));
  const plot = element("div", { className: "figure-plot figure-plot--curve" });
  const tools = element("div", { className: "figure-tools" });
  const titles = sides.map(({ model }) => model.title);
  const figure = element("figure", { className: "atlas-figure is-live compare-helices" }, tools, plot);
  figure.dataset.label = `The position curves of ${titles[0]} and ${titles[1]} in one frame.`;
  figure.dataset.name = "both-curves";
  figure.dataset.model = titles.join(" and ");
  figure.append(
    element(
      "figcaption",
      {},
      element("strong", { textContent: "Both position curves." }),
      ` That of ${titles[0]} in blue and that of ${titles[1]} in orange, each in its own ` +
        "three principal components and scaled to the same size: compare their shapes, not their lengths.",
    ),
  );
  const { style } = data[0];
  const lines = data.map(({ rows: [{ first, points }] }, i) => ({
    first,
    points: scaled(points),
    colours: points[0].map(() => style.colours[i]),
    label: (k) => `${titles[i]}\nposition ${first + k}`,
    pick: (k) => ({ kind: "position", index: first + k, model: sides[i].model.name }),
  }));
  const legend = titles.map((title, i) => [title, style.colours[i]]);
  const scene = () => ({ lines, axes: ["PC 1", "PC 2", "PC 3"], bar: null, legend });
  const output = spoken();
  const drawn = turnable(plot, tools, output, style, scene, false);
  tools.append(output);
  const csv = () => [
    ["model", "position", "PC 1", "PC 2", "PC 3"],
    ...lines.flatMap(({ first, points }, i) =>
      points[0].map((_, k) => [titles[i], first + k, ...points.map((column) => column[k])]),
    ),
  ];
  describe(plot, figure, HOW_TO_TURN);
  return Object.assign(figure, { atlas: { ...drawn, csv } });
}

function picture(model, finding, root) {
  const cell = element("div", { className: "compare-picture" }, element("p", {}, element("strong", { textContent: model.title })));
  const shown = model.pictures[finding.name];
  if (!shown) {
    cell.append(element("p", { textContent: "No figure: this finding was not computed here." }));
    return cell;
  }
  for (const tone of ["light", "dark"]) {
    const image = element("img", { src: root + shown[tone], alt: shown.alt, width: shown.width, height: shown.height, loading: "lazy" });
    cell.append(element("a", { className: `tone tone--${tone}`, href: root + shown[tone], title: "Open this picture large" }, image));
  }
  cell.append(element("p", { className: "numbers", textContent: shown.title }));
  return cell;
}

function figuresOf(sides, findings, root) {
  const shown = findings.filter(({ name }) => sides.some(({ model }) => model.pictures[name]));
  return shown.flatMap((finding) => {
    const pair = element("div", { className: "compare-pair" }, ...sides.map(({ model }) => picture(model, finding, root)));
    return [element("h3", { id: `compare-${finding.name}`, textContent: finding.title }), pair];
  });
}

let drawing = 0;
async function show(page, models, findings) {
  const mine = ++drawing; // a later choice must not be overtaken by an earlier one
  const root = page.dataset.root;
  const [status, result] = ["#compare-status", "#compare-result"].map((id) => page.querySelector(id));
  const form = page.querySelector("form");
  const chosen = asked(models);
  const known = (name) => models.some((model) => model.name === name);
  chosen.forEach((name, i) => known(name) && (form.elements["ab"[i]].value = name)); // the other may be wrong
  const unknown = chosen.find((name) => !known(name));
  if (unknown !== undefined) {
    status.textContent = `There is no model called “${unknown}”; choose two from the lists.`;
    result.replaceChildren();
    return;
  }
  status.textContent = "Loading …";
  try {
    const sides = await Promise.all(
      chosen.map(async (name) => ({
        model: models.find((model) => model.name === name),
        results: await json(new URL(`${root}data/${name}/findings.json`, document.baseURI)),
      })),
    );
    if (mine !== drawing) return;
    const together = element("div");
    result.replaceChildren(
      element("h2", { id: "claims", textContent: "Claims" }),
      ...claimsTable(sides, findings, form.elements.only.checked, root),
      element("h2", { id: "helices", textContent: "Their position curves in one frame" }),
      together,
      element("h2", { id: "figures", textContent: "Main figures" }),
      ...figuresOf(sides, findings, root),
    );
    status.textContent = `${sides[0].model.title} beside ${sides[1].model.title}.`;
    document.dispatchEvent(new CustomEvent("atlas:pictures"));
    const both = await helices(sides, root);
    if (mine !== drawing) return;
    if (!both) {
      together.append(element("p", { textContent: "They can't be drawn in one frame; they are side by side below." }));
      return;
    }
    together.append(both);
    liveMenu(both, both.atlas);
    onScheme(() => both.isConnected && both.atlas.draw());
  } catch (problem) {
    if (mine === drawing) status.textContent = `The results could not be loaded: ${reason(problem)}.`;
  }
}

/** Return the two models that the address asks for, or the first two there are. */
function asked(models) {
  const query = new URLSearchParams(location.search);
  const first = query.get("a") ?? models[0].name;
  const second = models.find((model) => model.name !== first) ?? models[0];
  return [first, query.get("b") ?? second.name];
}

async function enhance() {
  const page = find("#compare:not([data-enhanced])", HTMLElement);
  if (!page) return;
  page.dataset.enhanced = "";
  page.hidden = false;
  part("#compare-plain", HTMLElement).hidden = true;
  const [form, status] = [part("form", HTMLFormElement, page), part("#compare-status", HTMLElement, page)];
  const [a, b] = ["a", "b"].map((name) => part(`[name=${name}]`, HTMLSelectElement, form));
  const published = (name) => json(new URL(`${page.dataset.root}data/${name}.json`, document.baseURI));
  let models, findings;
  try {
    [models, findings] = await Promise.all(["models", "claims"].map(published));
  } catch (problem) {
    status.textContent = `The models and claims could not be loaded: ${reason(problem)}.`;
    return;
  }
  const choose = (one, other) => {
    const query = new URLSearchParams({ a: one, b: other });
    if (`?${query}` !== location.search) history.pushState(history.state, "", `?${query}`);
    show(page, models, findings);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => choose(a.value, b.value));
  part("#compare-swap", HTMLElement, page).addEventListener("click", () => choose(b.value, a.value));
  const back = () => (page.isConnected ? show(page, models, findings) : removeEventListener("popstate", back));
  addEventListener("popstate", back);
  show(page, models, findings);
}

onEveryPage(enhance);
