/* Lines that stored data have of an entity: a small drawing of each group of them, and their numbers as a table. */

import { drawn, element, scrolling } from "./dom.js";
import { inFull as written, isNumber } from "./numbers.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [360, 170, 46, 34, 10];

/** Return drawings of what lines say of one entity; `more(line)` is a link to the finding that they are from. */
export function drawings(lines, index, more) {
  const groups = grouped(lines);
  return [...groups].flatMap(([title, lines]) => drawing(title, curves(lines, index), more));
}

function grouped(lines) {
  const groups = new Map();
  for (const line of lines) groups.set(line.drawing, [...(groups.get(line.drawing) ?? []), line]);
  return groups;
}

/** Return what is drawn of an entity: its own lines, and faint ones of what is usual. */
function curves(lines, index) {
  return lines.flatMap((line, i) => {
    const own = { ...line, ys: line.values[index], style: i, faint: false };
    return line.usual ? [own, { ...line, says: line.usual_says, ys: line.usual, style: i, faint: true }] : [own];
  });
}

function drawing(title, lines, more) {
  const xs = lines.flatMap((line) => line.at);
  const ys = lines.flatMap((line) => line.ys).filter(isNumber);
  if (!ys.length) return [];
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  const [y0, y1] = [Math.min(0, ...ys), Math.max(0, ...ys) || 1];
  const x = (value) => LEFT + ((value - x0) / (x1 - x0 || 1)) * (WIDTH - LEFT - 10);
  const y = (value) => HEIGHT - BOTTOM - ((value - y0) / (y1 - y0 || 1)) * (HEIGHT - BOTTOM - TOP);
  const label = `${title}: ${lines.map((line) => line.says).join("; ")}. The numbers are in the table below.`;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "entity-drawing", role: "img", "aria-label": label });
  const text = (at, height, anchor, said) =>
    svg.append(drawn("text", { x: at, y: height, "text-anchor": anchor, class: "entity-label" }, said));
  svg.append(drawn("path", { d: `M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - 10}`, class: "entity-axis" }));
  if (y0 < 0) svg.append(drawn("path", { d: `M${LEFT},${y(0)}H${WIDTH - 10}`, class: "entity-axis entity-zero" }));
  for (const value of new Set([y0, y1])) text(LEFT - 5, y(value) + 4, "end", written(Number(value.toPrecision(3))));
  for (const value of new Set([x0, ...(x0 < 0 ? [0] : []), x1])) text(x(value), HEIGHT - BOTTOM + 14, "middle", written(value));
  text((LEFT + WIDTH) / 2, HEIGHT - 4, "middle", lines[0].across);
  for (const line of lines) {
    const points = line.at.map((at, i) => [at, line.ys[i]]).filter(([, value]) => isNumber(value));
    const path = points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    svg.append(drawn("polyline", { points: path, class: styleOf(line) }));
  }
  const legend = element("ul", { className: "entity-legend" }, ...lines.map((line) => legendOf(line, more)));
  return [element("h3", { textContent: title }), svg, legend, numbers(title, lines)];
}

const styleOf = (line) => `entity-line entity-line--${line.style % 5}${line.faint ? " entity-line--usual" : ""}`;

function legendOf(line, more) {
  const sample = drawn("svg", { viewBox: "0 0 24 8", width: 24, height: 8, "aria-hidden": "true" });
  sample.append(drawn("path", { d: "M0,4H24", class: styleOf(line) }));
  return element("li", {}, sample, ` ${line.says} `, line.faint ? "" : more(line));
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
