/* Lines side by side, to be pointed at: each point says its value and interval. A kind of figure for figures.js. */

import { ARROWS, describe, onKeys, spoken } from "./controls.js";
import { isNarrow, isTouch } from "./dom.js";
import { axes, faded, inLines, ink, nearestOf, pointing, sheet, wide } from "./drawing.js";
import { written } from "./numbers.js";

export function drawPanels(data, plot, tools, figure) {
  const { panels, style, linear_up_to: linear } = data;
  const state = { panel: 0, point: null };
  const STEEP = 1 / (1 - 1 / 10); // of the linear part of the axis, so that it goes on smoothly
  const UPRIGHT = 12; // rem that a panel is high where they stand one below the other

  /** Return a value's place on the axis: linear up to a limit, by decades beyond, as in the picture. */
  function place(value) {
    const size = Math.abs(value) / linear;
    return Math.sign(value) * (size <= 1 ? size * STEEP : STEEP + Math.log10(size));
  }
  const decades = [0, 1, 2, 3, 4].map((power) => linear * 10 ** power);
  const all = panels.flatMap(({ low, high, values }) => [...low, ...high, ...values]).concat(data.marks);
  const known = all.filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const numbers = [...decades.map((value) => -value), 0, ...decades].filter((value) => value >= least && value <= most * 1.001);

  const words = ({ names, values, low, high }, i) =>
    `${names[i]}: ${data.value} ${written(values[i])} (95 % interval ${written(low[i])} to ${written(high[i])})`;

  let marks = []; // of the points that are drawn: { panel, point, x, y }
  function paint(pen, width, height) {
    const colour = ink(style);
    const below = isNarrow();
    const left = Math.max(...numbers.map((value) => wide(written(value)))) + 34;
    const gap = below ? 62 : 22;
    const [across, down] = below
      ? [width - left - 10, height / panels.length - gap]
      : [(width - left - 10 - gap * (panels.length - 1)) / panels.length, height - 6 - 58];
    const [bottom, top] = [place(least) - 0.25, place(most) + 0.25];
    marks = [];
    panels.forEach((panel, k) => {
      const x0 = below ? left : left + k * (across + gap);
      const y0 = below ? k * (down + gap) + 6 : 6;
      const box = { left: x0, top: y0, right: x0 + across, bottom: y0 + down };
      const [first, last] = [panel.amounts[0], panel.amounts.at(-1)].map(Math.log10);
      const xAt = (amount) => x0 + 14 + ((Math.log10(amount) - first) / (last - first || 1)) * (across - 28);
      const yAt = (value) => box.bottom - ((place(value) - bottom) / (top - bottom)) * down;
      let free = -Infinity; // numbers that would touch the one before them are left out
      const amounts = panel.amounts.filter((amount) => {
        const half = wide(written(amount)) / 2;
        if (xAt(amount) - half < free + 4) return false;
        free = xAt(amount) + half;
        return true;
      });
      const title = below ? (k ? "" : data.value) : k ? "" : data.y_label;
      axes(
        pen,
        style,
        box,
        { title: inLines(panel.label, across + gap - 6), ticks: amounts, at: xAt },
        { title, ticks: numbers, at: yAt, unlabelled: !below && k > 0 },
      );
      for (const mark of data.marks) {
        const look = { stroke: faded(style, colour, 0.7), width: 1, dash: mark === 0 ? [] : [2, 3] };
        pen.line([[box.left, yAt(mark)], [box.right, yAt(mark)]], look); // prettier-ignore
      }
      const fill = style.colours[0];
      const there = panel.values.map((value, i) => (value === null ? null : [xAt(panel.amounts[i]), yAt(value)]));
      pen.line(there.filter(Boolean), { stroke: fill, width: 1.5 });
      there.forEach((at, i) => {
        if (!at) return;
        const [x, y] = at;
        const [low, high] = [panel.low[i] ?? panel.values[i], panel.high[i] ?? panel.values[i]].map(yAt);
        pen.line([[x, low], [x, high]], { stroke: fill, width: 1.2 }); // prettier-ignore
        for (const end of [low, high]) pen.line([[x - 3, end], [x + 3, end]], { stroke: fill, width: 1.2 }); // prettier-ignore
        const chosen = state.panel === k && state.point === i;
        pen.circle(x, y, chosen ? 6 : 3.5, { fill, ...(chosen ? { stroke: colour, width: 2 } : {}) });
        marks.push({ panel: k, point: i, x, y, text: words(panel, i).replace(": ", "\n").replace(" (", "\n(") });
      });
    });
  }

  const page = sheet(plot, style, paint);
  const fit = () => (plot.style.height = isNarrow() ? `${panels.length * UPRIGHT}rem` : "");
  const output = spoken();
  const tell = pointing(
    plot,
    (x, y, reach) => marks[nearestOf(marks.length, (i) => [marks[i].x, marks[i].y], x, y, reach)] ?? null,
    ({ panel, point }) => choose(panel, point),
  );
  function choose(panel, point) {
    Object.assign(state, { panel, point: Math.max(0, Math.min(panels[panel].values.length - 1, point)) });
    output.textContent = `${words(panels[panel], state.point)}.`;
    tell(null);
    page.draw();
  }
  onKeys(plot, ARROWS, (down, right) => {
    const panel = Math.max(0, Math.min(panels.length - 1, state.panel + down));
    choose(panel, state.point === null ? 0 : state.point + right);
  });
  tools.append(output);
  fit();
  describe(plot, figure, "left and right arrow keys go from point to point, up and down from panel to panel.");
  output.textContent = isTouch()
    ? "Tap a dot for its value and interval."
    : "Point at a dot, or go through them with the arrow keys, for its value and interval.";
  return {
    ...page,
    draw() {
      fit();
      page.draw();
    },
    marks: () => marks,
    state: () => (state.point === null ? {} : { panel: state.panel, point: state.point }),
    restore({ panel, point }) {
      if (panels[panel]?.values[point] !== undefined) choose(Number(panel), Number(point));
    },
    /** Return every point with its interval, one a line. */
    csv: () => [
      ["change", "amount", data.value, "interval from", "interval to"],
      ...panels.flatMap((panel) =>
        panel.values.map((value, i) => [panel.names[i], panel.amounts[i], value, panel.low[i], panel.high[i]]),
      ),
    ],
  };
}
