/* Try it: positions averaged in groups of g, the curve that they lie on, and what a head looks at by position alone.
   Computed here from the scores of positions on P's leading principal components and a small matrix for each head, which
   are fetched when the box is opened; how well that stands for the whole P is said beside it. */

import { all, drawn, element, find, json, onEveryPage } from "./dom.js";

const GROUPS = [1, 2, 3, 5, 10, 20, 50, 100];
const FIRST_QUERY = 100; // earlier ones have too few keys to choose from; in short contexts all but the first count
const SHORT = 200;
const REACH = 24; // offsets that are drawn, on either side
const QUERIES = 64; // over which the mean kernel is taken
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [420, 230, 44, 36];

/** Return numbers of half precision, little-endian in base64, as floats. */
export function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const halves = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 2 }, (_, i) => half(halves.getUint16(2 * i, true)));
}

export function half(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}

/* The mathematics: rows of scores as arrays, positions down. */

/** Return every row as the mean of its group of `size` rows; the last may be smaller. Row 0 stays and is in no mean. */
export function blurred(rows, size) {
  const means = [];
  for (let begin = 1; begin < rows.length; begin += size) {
    const group = rows.slice(begin, begin + size);
    means.push(group[0].map((_, j) => group.reduce((sum, row) => sum + row[j], 0) / group.length));
  }
  return rows.map((row, t) => (t === 0 ? row : means[Math.floor((t - 1) / size)]));
}

/** Return what a layer reads of positions with these scores: divided by what its norm divides by. */
export function coordinates(rows, known) {
  return rows.map((row) => {
    if (!known.width) return [...row, known.mean_norm, 1];
    const square = row.reduce((sum, s, j) => sum + s * s + 2 * s * known.along_mean[j], known.mean_norm ** 2);
    const sigma = Math.sqrt(Math.max(square, 0) / known.width + known.eps);
    return [...row.map((s) => s / sigma), known.mean_norm / sigma, 1];
  });
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

/** Return what a query at `t` gives every position. */
export function looks(z, matrix, t, causal) {
  const size = z[t].length;
  const query = z[t].map((_, j) => z[t].reduce((sum, x, i) => sum + x * matrix[i * size + j], 0));
  const seen = causal ? z.slice(0, t + 1) : z;
  const scores = seen.map((key) => dot(query, key));
  const most = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - most));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

const firstQuery = (n) => (n >= SHORT ? FIRST_QUERY : 1);

/** Return queries spread over those that count. */
function spread(n) {
  const first = firstQuery(n);
  return [...new Set(Array.from({ length: QUERIES }, (_, i) => Math.trunc(first + (i * (n - 1 - first)) / (QUERIES - 1))))];
}

/** Return the mean attention at each of some offsets, over the queries that have it. */
export function kernel(z, matrix, causal, offsets) {
  const [sums, counts] = [offsets.map(() => 0), offsets.map(() => 0)];
  for (const t of spread(z.length)) {
    const weights = looks(z, matrix, t, causal);
    offsets.forEach((offset, i) => {
      if (t - offset < 0 || t - offset >= weights.length) return;
      sums[i] += weights[t - offset];
      counts[i] += 1;
    });
  }
  return sums.map((sum, i) => (counts[i] ? sum / counts[i] : null));
}

/* Drawings. */

const path = (points, x, y) => points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ");
const label = (x, y, text, anchor = "middle") => drawn("text", { x, y, "text-anchor": anchor, class: "entity-label" }, text);

function picture(svg, name, ...parts) {
  svg.setAttribute("aria-label", name);
  svg.replaceChildren(...parts);
}

/** Draw the curve in the plane of two components: faint as it is, with dots where it is blurred. */
function drawCurve(svg, exact, rows, position, size) {
  const flat = exact.map((row) => [row[0], row[1]]);
  const [xs, ys] = [flat.map(([a]) => a).sort((a, b) => a - b), flat.map(([, b]) => b).sort((a, b) => a - b)];
  const at = (values, share) => values[Math.round(share * (values.length - 1))];
  // A few positions lie far out; what is drawn is where nearly all are.
  const [x0, x1, y0, y1] = [at(xs, 0.005), at(xs, 0.995), at(ys, 0.005), at(ys, 0.995)];
  const scale = Math.min((WIDTH - 20) / (x1 - x0 || 1), (HEIGHT - 50) / (y1 - y0 || 1));
  const x = (value) => WIDTH / 2 + (value - (x0 + x1) / 2) * scale;
  const y = (value) => (HEIGHT - 20) / 2 - (value - (y0 + y1) / 2) * scale;
  const inside = ([a, b]) => x(a) > 0 && x(a) < WIDTH && y(b) > 0 && y(b) < HEIGHT - 20;
  const beads = rows.filter((_, t) => t % size === 0).map((row) => [row[0], row[1]]).filter(inside);
  const dots = beads.map(([a, b]) => drawn("circle", { cx: x(a).toFixed(1), cy: y(b).toFixed(1), r: size > 1 ? 3 : 1.2, class: "trial-bead" }));
  /** @type {[number, number]} */
  const here = [rows[position][0], rows[position][1]];
  if (inside(here)) dots.push(drawn("circle", { cx: x(here[0]), cy: y(here[1]), r: 6, class: "trial-here" }));
  const line = drawn("polyline", { points: path(flat.filter(inside), x, y), class: "entity-line trial-exact" });
  const name = `Positions along the first two principal components: ${beads.length} of ${Math.ceil(rows.length / size)} different places.`;
  picture(svg, name, line, ...dots, label(WIDTH / 2, HEIGHT - 4, "first principal component (across) and second (upwards)"));
}

/** Draw weights by offset: blurred over exact, and a line at the chosen offset. */
function drawKernel(svg, title, offsets, exact, blur, chosen) {
  const all = [...exact, ...blur].filter((value) => value !== null);
  const most = Math.max(...all) || 1;
  const [o0, o1] = [offsets[0], offsets.at(-1)];
  const x = (offset) => LEFT + ((offset - o0) / (o1 - o0)) * (WIDTH - LEFT - 10);
  const y = (weight) => HEIGHT - BOTTOM - (weight / most) * (HEIGHT - BOTTOM - 14);
  const points = (values) => offsets.map((offset, i) => [offset, values[i]]).filter(([, value]) => value !== null);
  picture(
    svg,
    title,
    drawn("path", { d: `M${LEFT},10V${HEIGHT - BOTTOM}H${WIDTH - 10}`, class: "entity-axis" }),
    drawn("path", { d: `M${x(chosen)},10V${HEIGHT - BOTTOM}`, class: "entity-axis entity-zero" }),
    drawn("polyline", { points: path(points(exact), x, y), class: "entity-line trial-exact" }),
    drawn("polyline", { points: path(points(blur), x, y), class: "entity-line entity-line--0" }),
    label(LEFT - 4, y(most) + 4, most.toPrecision(2), "end"),
    label(LEFT - 4, y(0) + 4, "0", "end"),
    label(x(o0), HEIGHT - BOTTOM + 14, String(o0).replace("-", "−")),
    label(x(o1), HEIGHT - BOTTOM + 14, String(o1)),
    label((LEFT + WIDTH) / 2, HEIGHT - 4, "offset: tokens back from the query"),
  );
}

const share = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);

/* The box. */

function labelled(text, control) {
  return element("label", {}, `${text} `, control);
}

function listOf(values, chosen) {
  const select = element("select");
  for (const [value, text] of values) select.append(element("option", { value, textContent: text, selected: value === chosen }));
  return select;
}

function number(min, max, value) {
  return element("input", { type: "number", min, max, value, required: true, autocomplete: "off" });
}

const range = (count) => Array.from({ length: count }, (_, i) => [i, i]);

/** Fetch what is needed and put the controls into the box. */
async function build(box) {
  const source = new URL(box.dataset.trial, location.href);
  const known = await json(new URL("trial.json", source));
  const flat = unpacked(known.scores);
  const k = known.components;
  const exact = Array.from({ length: known.n }, (_, t) => Array.from(flat.subarray(t * k, (t + 1) * k)));
  const layers = new Map();
  const layer = listOf(range(known.layers), known.best[0]);
  const head = listOf(range(known.heads), known.best[1]);
  const size = listOf(GROUPS.filter((g) => g <= known.n / 2).map((g) => [g, g === 1 ? "1 (as they are)" : g]), known.group);
  const position = number(0, known.n - 1, Math.min(known.n - 1, Math.round(known.n / 2) + 5));
  const offset = number(known.causal ? 0 : -REACH, REACH, 1);
  const [curve, mean, one] = [1, 2, 3].map(() => drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "entity-drawing", role: "img" }));
  const said = element("p", { className: "trial-said" });
  said.setAttribute("aria-live", "polite");
  const offsets = Array.from({ length: (known.causal ? 0 : REACH) + REACH + 1 }, (_, i) => i - (known.causal ? 0 : REACH));

  async function matrices(at) {
    if (!layers.has(at)) {
      const file = json(new URL(`trial-${at}.json`, source)).then(({ matrices: packed, errors }) => {
        const values = unpacked(packed);
        const each = (k + 2) ** 2;
        return { errors, of: (h) => values.subarray(h * each, (h + 1) * each) };
      });
      file.catch(() => layers.delete(at));
      layers.set(at, file);
    }
    return layers.get(at);
  }

  async function show() {
    if (!position.checkValidity() || !offset.checkValidity()) {
      said.textContent = `Positions run from 0 to ${known.n - 1}, offsets from ${offset.min} to ${offset.max}.`;
      return;
    }
    const [l, h, g, t, o] = [layer, head, size, position, offset].map((control) => Number(control.value));
    const { errors, of } = await matrices(l);
    if (l !== Number(layer.value)) return; // another one was chosen meanwhile
    const matrix = of(h);
    const rows = blurred(exact, g);
    const [before, after] = [coordinates(exact, known), coordinates(rows, known)];
    const kernels = [before, after].map((z) => kernel(z, matrix, known.causal, offsets));
    const looked = [before, after].map((z) => looks(z, matrix, t, known.causal));
    const there = looked.map((weights) => offsets.map((step) => weights[t - step] ?? null));
    const name = `L${l}H${h}`;
    drawCurve(curve, exact, rows, t, g);
    drawKernel(mean, `${name}, mean attention by offset, blurred and unblurred`, offsets, ...kernels, o);
    drawKernel(one, `${name} at position ${t}, attention by offset, blurred and unblurred`, offsets, ...there, o);
    const at = offsets.indexOf(o);
    const place = o === 0 ? "itself" : o < 0 ? `the token ${-o} ahead` : `the token ${o} back`;
    said.textContent =
      `With positions in groups of ${g}, ${name} gives ${place} ${share(kernels[1][at])} of its attention instead of ${share(kernels[0][at])}; ` +
      `at position ${t}, ${share(there[1][at])} instead of ${share(there[0][at])}. ` +
      `(These leading components of P misplace ${share(errors[h][0])} of this head's attention; in groups of ${known.group}, ${share(errors[h][1])}.)`;
  }

  const failed = () => (said.textContent = "The data could not be loaded. Are you online?");
  const controls = element(
    "div",
    { className: "things-form" },
    labelled("Groups of", size),
    labelled("Layer", layer),
    labelled("Head", head),
    labelled("Position", position),
    labelled("Offset", offset),
  );
  controls.addEventListener("input", () => show().catch(failed));
  const captioned = (svg, text) => element("figure", {}, svg, element("figcaption", { textContent: text }));
  box.append(
    controls,
    said,
    element(
      "div",
      { className: "trial-pictures" },
      captioned(curve, "Positions: thin line unblurred, dots blurred, ring the chosen one."),
      captioned(mean, "Mean attention over all queries: thin unblurred, thick blurred."),
      captioned(one, "Attention from the chosen position."),
    ),
  );
  await show();
}

function watch() {
  for (const box of all("details.try-it")) {
    if (!(box instanceof HTMLDetailsElement)) continue;
    const opened = () => {
      if (!box.open || box.dataset.built) return;
      box.dataset.built = "yes";
      build(box).catch(() => {
        delete box.dataset.built;
        const sorry = "The data could not be loaded. Are you online?";
        if (!box.querySelector(".trial-sorry")) box.append(element("p", { className: "trial-sorry", textContent: sorry }));
      });
    };
    box.addEventListener("toggle", opened);
    if (location.hash === `#${box.id}`) box.open = true;
    opened();
  }
}

/** Let the box be opened, by hand or by its address. */
export function startTrial() {
  addEventListener("hashchange", () => {
    const box = find("details.try-it", HTMLDetailsElement);
    if (box && location.hash === `#${box.id}`) box.open = true;
  });
  onEveryPage(watch);
}
