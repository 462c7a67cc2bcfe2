/* Tokens in a plane: pointed at, searched, gone through by keys, looked at closely. A kind of figure for figures.js. */

import { ARROWS, describe, onKeys, spoken } from "./controls.js";
import { element, isTouch } from "./dom.js";
import { axes, faded, ink, legend, nearestOf, page as background, pick, pointing, sheet, shown, wide } from "./drawing.js";
import { ticks, written } from "./numbers.js";

export function drawScatter(data, plot, tools, figure) {
  const { style, groups } = data;
  const NAMED_MOST = 24; // matches that are named in the figure
  const MOST_COVERED = 1; // dots that a name may lie on: where more are it would hide a cluster
  const CLOSEST = 1e-4; // of the whole view
  const tokens = groups.flatMap((group) =>
    group.ids.map((id, i) => ({ id, x: group.x[i], y: group.y[i], group, name: group.names ? group.names[i] : `#${id}` })),
  );
  const seen = tokens.filter(({ x, y }) => x !== null && y !== null);
  const whole = ["x", "y"].map((axis) => {
    const values = seen.map((token) => token[axis]).concat(data.named.map((one) => one[axis === "x" ? 0 : 1]));
    const [low, high] = [Math.min, Math.max].map((end) => values.reduce((a, b) => end(a, b), values[0] ?? 0));
    const room = (high - low || 1) * 0.04;
    return [low - room, high + room];
  });
  /**
   * @typedef {{ id: number, x: number, y: number, group: any, name: string }} Token
   * @typedef {import("./drawing.js").Point} Point
   * @type {{ found: Token[], ends: number[][], pointed: Token | null, dragged: [Point, Point] | null, asked: string }}
   */
  const state = { found: [], ends: whole, pointed: null, dragged: null, asked: "" };
  /** @type {any} */
  let place = null; // where the axes are

  /** @type {(token: { x: number, y: number }) => Point} */
  const at = ({ x, y }) => {
    const [[x0, x1], [y0, y1]] = state.ends;
    return [
      place.left + ((x - x0) / (x1 - x0)) * (place.right - place.left),
      place.bottom - ((y - y0) / (y1 - y0)) * (place.bottom - place.top),
    ];
  };
  const back = (left, top) => {
    const [[x0, x1], [y0, y1]] = state.ends;
    return [
      x0 + ((left - place.left) / (place.right - place.left)) * (x1 - x0),
      y0 + ((place.bottom - top) / (place.bottom - place.top)) * (y1 - y0),
    ];
  };
  const inside = ([x, y]) => x >= place.left && x <= place.right && y >= place.top && y <= place.bottom;

  /** Write names beside their marks: to the right, else to the left, above or below; none on top of another, nor, but
      for those that were looked for, of a mark or a cluster of dots. */
  function names(pen, marks) {
    const taken = [];
    const dots = state.found.length ? [] : seen.map(at);
    const covered = (those, left, right, middle) =>
      those.filter(([x, y]) => x > left && x < right && Math.abs(y - middle) < 8).length;
    const marked = state.found.length ? [] : marks.map((mark) => mark.at);
    for (const { name, at: [x, y] } of marks) { // prettier-ignore
      const text = shown(name);
      const across = wide(text, 11);
      const tried = [[x + 9, y], [x - 9 - across, y], [x - across / 2, y - 14], [x - across / 2, y + 14]]; // prettier-ignore
      const free = tried.find(
        ([left, middle]) =>
          left >= place.left &&
          left + across <= place.right &&
          middle - 7 >= place.top &&
          middle + 7 <= place.bottom &&
          taken.every(([l, r, m]) => left > r + 4 || left + across < l - 4 || Math.abs(middle - m) > 14) &&
          !covered(marked, left, left + across, middle) &&
          covered(dots, left, left + across, middle) <= MOST_COVERED,
      );
      if (!free) continue;
      if (!state.found.length) pen.circle(x, y, 4, { stroke: ink(style), width: 1 });
      taken.push([free[0], free[0] + across, free[1]]);
      pen.text(text, ...free, { fill: ink(style), size: 11, baseline: "middle", halo: background(style) });
    }
  }

  function paint(pen, width, height) {
    const colour = ink(style);
    const many = tokens.length > 800;
    const [across, down] = state.ends;
    const count = [Math.min(8, width / 90), height / 60];
    const numbers = [across, down].map(([low, high], i) => ticks(low, high, count[i]));
    const entries = groups.map((group) => [group.name, style.colours[group.colour % style.colours.length]]);
    const high = groups.length > 1 ? legend(pen, style, entries, 54, 2, width) + 4 : 6;
    const labels = Math.max(...numbers[1].map((value) => wide(written(value, 6))));
    place = { left: labels + 30, top: high, right: width - 8, bottom: height - 42 };
    const label = (value) => written(value, 6);
    axes(
      pen,
      style,
      place,
      { title: data.x_label, ticks: numbers[0], at: (x) => at({ x, y: 0 })[0], label },
      { title: data.y_label, ticks: numbers[1], at: (y) => at({ x: 0, y })[1], label },
    );
    pen.within(place.left, place.top, place.right - place.left, place.bottom - place.top, () => {
      if (data.diagonal) {
        const ends = [Math.min(across[0], down[0]), Math.max(across[1], down[1])];
        pen.line(ends.map((value) => at({ x: value, y: value })), { stroke: colour, width: 1, dash: [6, 4] });
      }
      const alpha = state.found.length ? 0.22 : 0.6;
      for (const token of seen) {
        const [x, y] = at(token);
        const fill = style.colours[token.group.colour % style.colours.length];
        pen.circle(x, y, many ? 1.75 : 3, { fill, alpha });
      }
      if (data.origin) {
        const [x, y] = at({ x: 0, y: 0 });
        for (const [a, b] of [[7, 0], [0, 7]]) pen.line([[x - a, y - b], [x + a, y + b]], { stroke: colour, width: 2.5 }); // prettier-ignore
      }
      const marks = state.found.length
        ? state.found.map((token) => ({ name: token.name, at: at(token) }))
        : data.named.map(([x, y, name]) => ({ name, at: at({ x, y }) }));
      for (const token of state.found) pen.circle(...at(token), 5.5, { stroke: colour, width: 2 });
      if (state.pointed) pen.circle(...at(state.pointed), 7, { stroke: colour, width: 2 });
      names(pen, marks.filter((mark) => inside(mark.at)).slice(0, NAMED_MOST));
    });
    if (state.dragged) {
      const [[x0, y0], [x1, y1]] = state.dragged;
      pen.rect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0), { stroke: colour, fill: faded(style, colour, 0.5), alpha: 0.35 });
    }
  }

  const page = sheet(plot, style, paint);
  const words = (token) =>
    `\u2068${token.name}\u2069\nid ${token.id}\n${data.x_label} ${written(token.x, 4)}\n${data.y_label} ${written(token.y, 4)}` +
    (groups.length > 1 ? `\n${token.group.name}` : "");
  const detail = (token) => ({ kind: "token", index: token.id });
  const mark = (token) => {
    const [x, y] = at(token);
    return { token, x, y, text: words(token), pick: detail(token) };
  };
  const tell = pointing(
    plot,
    (x, y, reach) => {
      const index = place ? nearestOf(seen.length, (i) => at(seen[i]), x, y, reach) : -1;
      return index < 0 || !inside(at(seen[index])) ? null : mark(seen[index]);
    },
    ({ token }) => point(token),
  );
  const output = spoken();
  function point(token) {
    state.pointed = token;
    page.draw();
  }
  function see(ends) {
    const least = whole.map(([low, high]) => (high - low) * CLOSEST);
    state.ends = ends.map(([low, high], i) => (high - low < least[i] ? state.ends[i] : [low, high]));
    tell(null);
    page.draw();
  }
  const zoom = (factor) =>
    see(state.ends.map(([low, high]) => [-1, 1].map((side) => (low + high) / 2 + (side * factor * (high - low)) / 2)));

  /** Return the tokens whose name holds the text, those that are the text first. A space may be typed for ␣. */
  function search(text) {
    const wanted = text.toLowerCase();
    const spaced = wanted.replaceAll(" ", "\u2420").replaceAll("\u2423", "\u2420");
    const found = seen.filter(({ id, name }) => {
      const low = name.toLowerCase();
      return low.includes(wanted) || low.includes(spaced) || String(id) === wanted;
    });
    const exact = ({ name }) => Number([wanted, spaced].includes(name.toLowerCase()));
    return found.sort((a, b) => exact(b) - exact(a) || a.id - b.id);
  }

  const input = element("input", { type: "search", autocomplete: "off", spellcheck: false });
  let waiting;
  function find() {
    state.asked = input.value;
    const { found } = Object.assign(state, { found: input.value.trim() ? search(input.value) : [] });
    const sample = seen.length < data.n_tokens ? ` (a sample of the vocabulary of ${data.n_tokens})` : "";
    output.replaceChildren();
    if (input.value && !found.length) output.append(`None of the ${seen.length} tokens drawn${sample}.`);
    else if (found.length) {
      output.append(`${found.length} of the ${seen.length} tokens drawn${sample}: `);
      found.slice(0, 6).forEach((one, i) => {
        const name = element("bdi", {}, element("code", { textContent: shown(one.name) }));
        output.append(i ? ", " : "", name, ` (id ${one.id}, at ${written(one.x, 4)}, ${written(one.y, 4)})`);
      });
      if (found.length > 6) output.append(", …");
    }
    page.draw();
  }
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(find, 150);
  });
  const reset = element("button", { type: "button", className: "md-button", textContent: "Whole view" });
  reset.addEventListener("click", () => see(whole));

  /* A rectangle that is drawn with the mouse is looked at closely; a finger scrolls the page. */
  /** @type {(event: PointerEvent) => Point} */
  const here = (event) => {
    const { left, top } = plot.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  plot.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || isTouch() || event.button > 0) return;
    state.dragged = [here(event), here(event)];
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!state.dragged) return;
    state.dragged[1] = here(event);
    page.draw();
  });
  plot.addEventListener("pointerup", () => {
    if (!state.dragged) return;
    const [[x0, y0], [x1, y1]] = state.dragged;
    state.dragged = null;
    if (Math.abs(x1 - x0) > 8 && Math.abs(y1 - y0) > 8) {
      const corners = [back(x0, y0), back(x1, y1)];
      see([0, 1].map((axis) => corners.map((corner) => corner[axis]).sort((a, b) => a - b)));
    } else page.draw();
  });
  plot.addEventListener("pointercancel", () => (state.dragged = null));
  plot.addEventListener("dblclick", () => see(whole));

  /** Go from the selected token to the nearest in a direction; begin with what was found, or the first. */
  function go(down, right) {
    const from = state.pointed;
    if (!from) return name(state.found[0] ?? seen[0]);
    const [x, y] = at(from);
    let [best, least] = [null, Infinity];
    for (const token of seen) {
      const [dx, dy] = at(token).map((value, i) => value - [x, y][i]);
      const ahead = right * dx + down * dy;
      const aside = Math.abs(right * dy) + Math.abs(down * dx);
      if (ahead < 0.5 || aside > 2 * ahead || !inside(at(token))) continue;
      if (ahead + aside < least) [best, least] = [token, ahead + aside];
    }
    if (best) name(best);
  }
  function name(token) {
    if (!token) return;
    point(token);
    tell(mark(token));
    output.textContent = `${words({ ...token, name: shown(token.name) }).replaceAll("\n", ", ")}.`;
  }

  tools.append(element("label", {}, "Find a token ", input), reset, output);
  describe(
    plot,
    figure,
    "the field above it finds tokens by name; arrow keys go from token to token, Enter opens the selected one; plus and minus zoom, Home shows the whole.",
  );
  onKeys(plot, { ...ARROWS }, go);
  onKeys(plot, { "+": [0.8], "=": [0.8], "-": [1.25] }, zoom);
  onKeys(plot, { Home: [] }, () => see(whole));
  onKeys(plot, { Enter: [] }, () => state.pointed && pick(plot, detail(state.pointed)));
  return {
    ...page,
    found: () => state.found,
    tokens: seen,
    at: (token) => at(token),
    ends: () => state.ends,
    state: () => ({
      ...(state.asked ? { find: state.asked } : {}),
      ...(state.ends === whole ? {} : { x: state.ends[0].map((v) => v.toPrecision(4)).join("_"), y: state.ends[1].map((v) => v.toPrecision(4)).join("_") }),
    }),
    restore(view) {
      const ends = [view.x, view.y].map((said) => (said ?? "").split("_").map(Number));
      if (ends.every(([low, high]) => high > low)) see(ends);
      if (view.find) {
        input.value = view.find;
        find();
      }
    },
    /** Return the tokens that are drawn, one a line. */
    csv: () => [
      ["id", "token", data.x_label, data.y_label, "group"],
      ...tokens.map(({ id, name, x, y, group }) => [id, group.names ? name : "", x, y, group.name]),
    ],
  };
}
