/* Two models side by side, from the JSON that the site publishes: models.json, claims.json and <model>/findings.json
   in its folder data/. */

import { describe, spoken } from "./controls.js";
import { HOW_TO_TURN, scaled, turnable } from "./curve.js";
import { element, find, json, onEveryPage, onScheme, part, reason, scrolling, verdict } from "./dom.js";
import { liveMenu } from "./figure-menu.js";
import { asInTables as number, partOf } from "./numbers.js";
import { ask } from "./print.js";

const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));

function judged(claim, model, root) {
  if (!claim) return element("td", { textContent: "not judged" });
  const link = element("a", { href: root + model.claims + claim.id, title: claim.answer }, verdict(claim.verdict, claim.weak));
  if (claim.value === null) return element("td", {}, link);
  const whole = partOf(claim.unit);
  const [value, words] = whole === null ? [number(claim.value), claim.unit] : [`${number(100 * claim.value)}\u00a0%`, whole];
  return element("td", {}, link, ` ${value}`, element("span", { className: "unit", textContent: words ? ` ${words}` : "" }));
}

// Counts of what one model has more of than another: their difference says nothing.
const COUNTS = ["layers", "rank of the channel", "tokens", "channels"];

function difference(one, other) {
  if (one?.value == null || other?.value == null || COUNTS.includes(one.unit)) return "–";
  const more = other.value - one.value;
  return partOf(one.unit) === null ? signed(more) : `${signed(100 * more)} points`;
}

/** Return what is said of the claims: how many verdicts differ, a table of these, and the others folded. */
function claimsOf(sides, findings, root) {
  const [a, b] = sides.map(({ results }) => new Map(results.claims.map((claim) => [claim.id, claim])));
  const titles = sides.map(({ model }) => model.title);
  const isTested = (claim) => claim !== undefined && claim.verdict !== "untested";
  const isTogether = ({ id }) => isTested(a.get(id)) && isTested(b.get(id));
  const differs = (claim) => isTogether(claim) && a.get(claim.id).verdict !== b.get(claim.id).verdict;

  const row = ({ id, statement }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", textContent: statement }),
      judged(a.get(id), sides[0].model, root),
      judged(b.get(id), sides[1].model, root),
      element("td", { className: "n", textContent: difference(a.get(id), b.get(id)) }),
    );
  const tableOf = (title, isShown) => {
    const heads = ["Claim", titles[0], titles[1], "Second minus first"].map((text, i) => element("th", { scope: "col", className: i > 2 ? "n" : "", textContent: text }));
    const table = element("table", { className: "compare-claims" }, element("caption", { textContent: title }), element("thead", {}, element("tr", {}, ...heads)));
    for (const finding of findings) {
      const shown = finding.claims.filter(isShown);
      if (!shown.length) continue;
      table.append(element("tbody", {}, element("tr", {}, element("th", { scope: "rowgroup", colSpan: 4, textContent: finding.title })), ...shown.map(row)));
    }
    return scrolling(table, title, "atlas-scroll compare-scroll");
  };

  const claims = findings.flatMap((finding) => finding.claims);
  const [together, differing] = [claims.filter(isTogether).length, claims.filter(differs).length];
  const apart = together < claims.length ? `; ${claims.length - together} of ${claims.length} are not tested in both` : "";
  const said = element("p", { textContent: `The verdicts differ in ${differing} of the ${together} claims tested in both${apart}.` });
  const rest = element(
    "details",
    { className: "more-of compare-rest", open: !differing },
    element("summary", { textContent: `The other ${claims.length - differing} claims` }),
    tableOf("Claims with one verdict, or not tested in both", (claim) => !differs(claim)),
  );
  ask(rest);
  return [said, ...(differing ? [tableOf("Claims whose verdicts differ", differs)] : []), ...(differing < claims.length ? [rest] : [])];
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
    pick: sides[i].model.only_in_series ? null : (k) => ({ kind: "position", index: first + k, model: sides[i].model.name }),
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
    cell.append(element("p", { textContent: "This finding has no figure of this model." }));
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
  return shown.map((finding, place) => {
    const level = place ? "h3" : "h2"; // the first stands above all other headings
    const isNarrow = sides.every(({ model }) => (model.pictures[finding.name]?.width ?? 0) <= 600);
    const pair = element("div", { className: isNarrow ? "compare-pair" : "compare-pair compare-pair--wide" }, ...sides.map(({ model }) => picture(model, finding, root)));
    return element("section", {}, element(level, { id: `compare-${finding.name}`, textContent: finding.title }), pair);
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
    const [first, ...others] = figuresOf(sides, findings, root);
    result.replaceChildren(
      ...(first ? [first] : []),
      element("h2", { id: "claims", textContent: "Claims" }),
      ...claimsOf(sides, findings, root),
      element("h2", { id: "helices", textContent: "Their position curves in one frame" }),
      together,
      element("h2", { id: "figures", textContent: "Other figures" }),
      ...others,
    );
    status.textContent = `${sides[0].model.title} beside ${sides[1].model.title}.`;
    document.dispatchEvent(new CustomEvent("atlas:pictures"));
    const both = await helices(sides, root);
    if (mine !== drawing) return;
    if (!both) {
      together.append(element("p", { textContent: "They can't be drawn in one frame; each is shown below." }));
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
