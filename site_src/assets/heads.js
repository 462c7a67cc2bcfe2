/* Heads as a grid of layers and heads; the one that is chosen shows where it looks, as lines by offset. A kind of figure
   for figures.js. */

import { ARROWS, choice, describe, onKeys, spoken } from "./controls.js";
import { isNarrow } from "./dom.js";
import { along, axes, colourBar, faded, ink, legend, pick, pointing, sheet, wide } from "./drawing.js";
import { ticks, written } from "./numbers.js";

export function drawHeads(data, plot, tools, figure) {
  const { style } = data;
  const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"];
  const DASHES = [[], [7, 4], [2, 3]];
  const layers = data.grids[0].values.length;
  const heads = data.grids[0].values[0].length;
  const all = data.grids[0].values.flat();
  const state = { head: all.indexOf(Math.max(...all)), grid: 0 };
  const at = (index) => [Math.floor(index / heads), index % heads];
  const called = (index) => `L${at(index)[0]}H${at(index)[1]}`;
  const detail = (index) => ({ kind: "head", index, layer: at(index)[0], head: at(index)[1] });

  let grid = null; // where the cells are: { left, top, right, bottom }
  let curves = null; // where the lines are, and how offsets and weights lie there

  function cells(pen) {
    const { values } = data.grids[state.grid];
    const [across, down] = [(grid.right - grid.left) / heads, (grid.bottom - grid.top) / layers];
    const whole = (count) => ticks(0, count - 1, Math.min(12, count), true);
    axes(
      pen,
      style,
      grid,
      { title: "head", ticks: whole(heads), at: (head) => grid.left + (head + 0.5) * across, bare: true },
      { title: "layer", ticks: whole(layers), at: (layer) => grid.top + (layer + 0.5) * down, bare: true },
    );
    values.forEach((row, layer) =>
      row.forEach((value, head) => {
        const fill = value === null ? faded(style, ink(style), 0.1) : along(VIRIDIS, value);
        pen.rect(grid.left + head * across, grid.top + layer * down, across + 0.5, down + 0.5, { fill });
      }),
    );
    const [layer, head] = at(state.head);
    const ring = [grid.left + head * across, grid.top + layer * down, across, down];
    pen.rect(...ring, { stroke: style.colours[1], width: 3 });
  }

  function lines(pen) {
    const { box } = curves;
    const shownOf = data.lines.map(({ weights }) => weights[state.head]);
    const offsets = data.lines.flatMap((line) => line.offsets);
    const [first, last] = [Math.min(...offsets), Math.max(...offsets)];
    const top = Math.max(1e-9, ...shownOf.flat().filter((value) => value !== null)) * 1.05;
    curves.x = (offset) => box.left + 8 + ((offset - first) / (last - first || 1)) * (box.right - box.left - 16);
    curves.y = (weight) => box.bottom - (weight / top) * (box.bottom - box.top);
    axes(
      pen,
      style,
      box,
      { title: "offset: tokens back from the query", ticks: ticks(first, last, 7, true), at: curves.x },
      { title: "mean attention", ticks: ticks(0, top, 5), at: curves.y },
    );
    if (first <= 1 && last >= 1) {
      const look = { stroke: faded(style, ink(style), 0.6), width: 1, dash: [2, 3] };
      pen.line([[curves.x(1), box.top], [curves.x(1), box.bottom]], look); // prettier-ignore
    }
    curves.marks = [];
    data.lines.forEach((line, k) => {
      const stroke = style.colours[k % style.colours.length];
      const points = line.offsets.map((offset, i) => [offset, shownOf[k][i]]).filter(([, weight]) => weight !== null);
      const there = points.map(([offset, weight]) => [curves.x(offset), curves.y(weight)]);
      pen.line(there, { stroke, width: 2, dash: DASHES[k % DASHES.length] });
      there.forEach(([x, y], i) => {
        pen.circle(x, y, 2.5, { fill: stroke });
        const [offset, weight] = points[i];
        curves.marks.push({ x, y, text: `offset ${written(offset)}\n${line.name} ${written(weight)}` });
      });
    });
  }

  function paint(pen, width, height) {
    const below = isNarrow();
    const left = wide(String(layers)) + 30;
    const apart = below ? width : width * 0.44;
    grid = { left, top: 58, right: apart - 6, bottom: below ? height * 0.46 : height - 42 };
    colourBar(pen, style, { title: data.label, stops: VIRIDIS, low: 0, high: 1, values: [0, 0.25, 0.5, 0.75, 1] }, left + 8, 0, grid.right - left - 16);
    cells(pen);
    const start = below ? 70 : apart + 54;
    const entries = data.lines.map(({ name }, k) => [name, style.colours[k % style.colours.length], DASHES[k % DASHES.length]]);
    const top = below ? height * 0.46 + 52 : 0;
    const high = legend(pen, style, entries, start, top, width);
    curves = { box: { left: start, top: below ? top + high + 6 : Math.max(58, high + 6), right: width - 8, bottom: height - 42 } };
    lines(pen);
  }

  const page = sheet(plot, style, paint);
  const cellAt = (x, y) => {
    const head = Math.floor(((x - grid.left) / (grid.right - grid.left)) * heads);
    const layer = Math.floor(((y - grid.top) / (grid.bottom - grid.top)) * layers);
    return head >= 0 && head < heads && layer >= 0 && layer < layers ? layer * heads + head : null;
  };
  pointing(
    plot,
    (x, y, reach) => {
      if (!grid) return null;
      const index = cellAt(x, y);
      if (index !== null) {
        const { name, values } = data.grids[state.grid];
        return { index, x, y, text: `${called(index)}\n${name} ${written(values[at(index)[0]][at(index)[1]])}`, pick: detail(index) };
      }
      const near = curves.marks.map((mark) => ({ mark, far: Math.hypot(mark.x - x, mark.y - y) }));
      const [best] = near.filter(({ far }) => far < reach).sort((a, b) => a.far - b.far);
      return best?.mark ?? null;
    },
    ({ index }) => index !== undefined && choose(index),
  );

  const output = spoken();
  const names = all.map((_, index) => called(index));
  const [headLabel, headSelect] = choice("Head", names, (index) => choose(index));
  let gridSelect = null;
  /** Choose a head: say its weights on the previous token, and draw its lines. */
  function choose(index) {
    state.head = index;
    headSelect.value = index;
    const said = data.lines.map(({ name, offsets, weights }) => {
      const weight = weights[index][offsets.indexOf(1)];
      return `${name} ${weight === undefined || weight === null ? "–" : weight.toFixed(3)}`;
    });
    output.textContent = `${called(index)} gives the previous token: ${said.join(", ")}.`;
    page.draw();
  }
  function colourBy(i) {
    state.grid = i;
    page.draw();
  }
  onKeys(plot, ARROWS, (...step) => {
    const [layer, head] = at(state.head).map((place, i) => place + step[i]);
    if (layer >= 0 && layer < layers && head >= 0 && head < heads) choose(layer * heads + head);
  });
  onKeys(plot, { Enter: [] }, () => pick(plot, detail(state.head)));
  tools.append(headLabel);
  if (data.grids.length > 1) {
    const [gridLabel, select] = choice("Color", data.grids.map(({ name }) => name), colourBy);
    gridSelect = select;
    tools.append(gridLabel);
  }
  tools.append(output);
  choose(state.head);
  describe(plot, figure, "arrow keys go from head to head, Enter opens the chosen one; the lines are its.");
  return {
    ...page,
    chosen: () => state,
    lines: () => data.lines.map(({ name, weights }) => ({ name, weights: weights[state.head] })),
    grid: () => grid,
    state: () => ({ head: called(state.head), colour: state.grid }),
    restore({ head, colour }) {
      if (names.includes(head)) choose(names.indexOf(head));
      if (gridSelect && data.grids[colour]) {
        gridSelect.value = colour;
        colourBy(Number(colour));
      }
    },
    /** Return the grids and the lines of every head, one number a line. */
    csv: () => [
      ["layer", "head", "what", "offset", "value"],
      ...data.grids.flatMap(({ name, values }) =>
        values.flatMap((row, layer) => row.map((value, head) => [layer, head, `${data.label}, ${name}`, "", value])),
      ),
      ...data.lines.flatMap(({ name, offsets, weights }) =>
        weights.flatMap((row, index) => row.map((value, i) => [...at(index), name, offsets[i], value])),
      ),
    ],
  };
}
