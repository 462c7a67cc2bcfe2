/* Curves in three dimensions: turned by mouse, finger, keys and by themselves; each dot names its position. A kind of
   figure for figures.js; compare.js draws two in one frame. The third axis stands upright. */

import { choice, describe, spoken } from "./controls.js";
import { element, isTouch } from "./dom.js";
import { along, colourBar, faded, ink, legend, nearestOf, pick, pointing, sheet } from "./drawing.js";
import { written } from "./numbers.js";

const STEP = Math.PI / 36; // a key press turns by five degrees
const ROUND = 17; // seconds that a whole turn takes
const HOME = { turn: Math.PI / 4, tilt: 0.452, zoom: 1 };
const STEEPEST = 1.5; // radians
const FAR = 6; // how far the eye is, in radii of what it sees
const BAR = 64; // pixels below the curve for the scale of colours
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const HOW_TO_TURN =
  "arrow keys turn it, plus and minus move closer and away, Home returns; n and p go from position to position, " +
  "Enter opens the selected one.";

/** Return the middle and the half size of some columns of numbers, each [x, y, z]. */
export function box(lines) {
  return [0, 1, 2].map((axis) => {
    let [low, high] = [Infinity, -Infinity];
    for (const { points } of lines) {
      for (const value of points[axis]) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    return { middle: (low + high) / 2, half: (high - low) / 2 || 1 };
  });
}

/** Return a curve's points about their mean, scaled to a mean square radius of 1: each model has its own units.
 * @param {number[][]} points columns of x, y and z
 */
export function scaled(points) {
  const centred = points.map((column) => {
    const mean = column.reduce((sum, value) => sum + value, 0) / column.length;
    return column.map((value) => value - mean);
  });
  const energy = centred.flat().reduce((sum, value) => sum + value * value, 0) / centred[0].length;
  return centred.map((column) => column.map((value) => value / Math.sqrt(energy)));
}

/** Return how a place in space is seen: [x, y, depth, size], the first two in pixels, depth growing towards the eye. */
export function view(lines, sides, { turn, tilt, zoom }, width, height) {
  const [sin, cos, up, flat] = [Math.sin(turn), Math.cos(turn), Math.sin(tilt), Math.cos(tilt)];
  const middle = sides.map((side) => side.middle);
  let [across, above, below] = [0, 0, 0];
  const reach = (x, y, z) => {
    const round = Math.hypot(x, y);
    across = Math.max(across, round);
    above = Math.max(above, z * flat + round * Math.abs(up));
    below = Math.max(below, -z * flat + round * Math.abs(up));
  };
  for (const { points } of lines) {
    const [xs, ys, zs] = points;
    for (let i = 0; i < xs.length; i++) reach(xs[i] - middle[0], ys[i] - middle[1], zs[i] - middle[2]);
  }
  reach(sides[0].half, sides[1].half, -sides[2].half); // the floor
  const far = FAR * Math.hypot(across, sides[2].half);
  const nearer = (1 + far / (far - Math.hypot(across, sides[2].half))) / 2; // few places are seen as near as that
  const scale = (zoom / nearer) * Math.min((width - 60) / (2 * across), (height - 36) / (above + below));
  const centre = [width / 2, height / 2 + ((above - below) / 2) * (scale / zoom)];
  return (x, y, z) => {
    const [a, b, c] = [x - middle[0], y - middle[1], z - middle[2]];
    const out = cos * a + sin * b;
    const depth = flat * out + up * c;
    const size = far / (far - depth);
    return [centre[0] + scale * size * (cos * b - sin * a), centre[1] - scale * size * (flat * c - up * out), depth, size];
  };
}

/** Draw the floor below a curve, an upright edge, and the names of the axes. */
function frame(pen, style, sides, seen, names, width, height) {
  const grid = { stroke: faded(style, ink(style), 0.16), width: 1 };
  const [x, y, z] = sides.map(({ middle, half }) => [middle - half, middle + half]);
  const floor = (a, b) => seen(a, b, z[0]).slice(0, 2);
  for (let i = 0; i <= 4; i++) {
    const [a, b] = [x, y].map(([low, high]) => low + ((high - low) * i) / 4);
    pen.line([floor(a, y[0]), floor(a, y[1])], grid);
    pen.line([floor(x[0], b), floor(x[1], b)], grid);
  }
  const corners = x.flatMap((a) => y.map((b) => [a, b])).sort((one, other) => seen(...one, z[0])[0] - seen(...other, z[0])[0]);
  const [left] = corners;
  const upright = z.map((c) => seen(...left, c).slice(0, 2));
  pen.line(upright, { stroke: faded(style, ink(style), 0.35), width: 1 });
  const look = { fill: ink(style), align: "center", baseline: "middle" };
  const inFrame = (px, py, dx, dy) => [
    Math.max(40, Math.min(width - 40, px + dx)),
    Math.max(8, Math.min(height - 8, py + dy)),
  ];
  const beside = (one, other, name) => {
    const [px, py] = floor((one[0] + other[0]) / 2, (one[1] + other[1]) / 2);
    const [mx, my] = floor((x[0] + x[1]) / 2, (y[0] + y[1]) / 2);
    const away = Math.hypot(px - mx, py - my) || 1;
    pen.text(name, ...inFrame(px, py, (30 * (px - mx)) / away, (16 * (py - my)) / away), look);
  };
  const nearer = (low, high, place) => (seen(...place(low), z[0])[2] > seen(...place(high), z[0])[2] ? low : high);
  const b = nearer(...y, (value) => [(x[0] + x[1]) / 2, value]);
  const a = nearer(...x, (value) => [value, (y[0] + y[1]) / 2]);
  beside([x[0], b], [x[1], b], names[0]);
  beside([a, y[0]], [a, y[1]], names[1]);
  const [px, py] = upright[0].map((value, i) => (value + upright[1][i]) / 2);
  pen.text(names[2], ...inFrame(px, py, -12, 0), { ...look, angle: -Math.PI / 2 });
}

/** Draw lines and dots, the farthest first. */
function strokes(pen, lines, seen) {
  const drawn = lines.flatMap(({ points: [x, y, z], colours }, k) =>
    x.map((_, i) => ({ k, i, colour: colours[i], at: seen(x[i], y[i], z[i]) })),
  );
  const order = drawn.map((_, index) => index).sort((a, b) => drawn[a].at[2] - drawn[b].at[2]);
  const radius = drawn.length > 1500 ? 1.8 : 2.6;
  for (const index of order) {
    const { k, i, colour, at } = drawn[index];
    const before = i ? drawn[index - 1] : null;
    if (before?.k === k && Math.abs(before.at[0] - at[0]) + Math.abs(before.at[1] - at[1]) > radius) { // else hidden by dots
      pen.line([before.at, at], { stroke: colour, width: 1.1, alpha: 0.45 });
    }
    pen.circle(at[0], at[1], radius * at[3], { fill: colour });
  }
  return drawn;
}

/** Draw a scene in a place and let it be turned. `scene()` returns { lines, axes, bar, legend }: lines are
    { name, first, points, colours, label(i), pick(i) }, the bar is what colourBar takes, either may be null.

    Return what figures.js keeps of a figure. */
export function turnable(plot, tools, output, style, scene, turning) {
  const camera = { ...HOME };
  let drawn = [];
  /** @type {number | null} */
  let pointed = null;
  const paint = (pen, width, height) => {
    const { lines, axes, bar, legend: names } = scene();
    const high = height - (bar ? BAR : 0) - (names ? 22 : 0);
    const sides = box(lines);
    const seen = view(lines, sides, camera, width, high);
    pen.within(0, 0, width, high, () => {
      frame(pen, style, sides, seen, axes, width, high);
      drawn = strokes(pen, lines, seen);
    });
    if (pointed !== null && drawn[pointed]) {
      const [x, y] = drawn[pointed].at;
      pen.circle(x, y, 7, { stroke: ink(style), width: 2 });
    }
    if (bar) colourBar(pen, style, bar, width * 0.1, height - BAR + 12, width * 0.8);
    if (names) legend(pen, style, names, 10, height - 20, width);
    plot.dataset.eye = eye().map((value) => value.toFixed(3)).join(" ");
  };
  const page = sheet(plot, style, paint);
  const eye = () => {
    const { turn, tilt, zoom } = camera;
    return [Math.cos(tilt) * Math.cos(turn), Math.cos(tilt) * Math.sin(turn), Math.sin(tilt)].map((v) => v / zoom);
  };
  function mark(index) {
    const { k, i, at } = drawn[index];
    const line = scene().lines[k];
    return { index, x: at[0], y: at[1], text: line.label(i), pick: line.pick?.(i) };
  }
  const nearest = (x, y, reach) => {
    const index = nearestOf(drawn.length, (i) => drawn[i].at, x, y, reach);
    return index < 0 ? null : mark(index);
  };
  const tell = pointing(plot, nearest, ({ index }) => point(index));
  function point(index) {
    pointed = index;
    page.draw();
  }
  function look(change) {
    Object.assign(camera, change);
    camera.tilt = Math.max(-STEEPEST, Math.min(STEEPEST, camera.tilt));
    camera.zoom = Math.max(0.3, Math.min(12, camera.zoom));
    tell(null);
    page.draw();
  }

  /** @type {(number | null)[]} */
  let [frameAsked, before] = [null, null];
  const button = element("button", { type: "button", className: "md-button turn" });
  function step(time) {
    if (!plot.isConnected) return stop();
    if (before !== null && !document.hidden) look({ turn: camera.turn + (2 * Math.PI * Math.min(100, time - before)) / (1000 * ROUND) });
    before = time;
    frameAsked = requestAnimationFrame(step);
  }
  function stop() {
    cancelAnimationFrame(frameAsked ?? 0);
    [frameAsked, before] = [null, null];
    button.textContent = "Turn";
    button.setAttribute("aria-pressed", "false");
  }
  function start() {
    button.textContent = "Stop turning";
    button.setAttribute("aria-pressed", "true");
    frameAsked = requestAnimationFrame(step);
  }
  button.addEventListener("click", () => (frameAsked === null ? start() : stop()));

  let held = null;
  plot.addEventListener("pointerdown", (event) => {
    stop();
    held = [event.clientX, event.clientY];
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const [across, down] = [event.clientX - held[0], event.clientY - held[1]];
    held = [event.clientX, event.clientY];
    look({ turn: camera.turn - across * 0.01, tilt: camera.tilt + down * 0.01 });
  });
  plot.addEventListener("pointerup", () => (held = null));
  plot.addEventListener("pointercancel", () => (held = null));

  const go = (by) => () => {
    if (!drawn.length) return;
    const index = pointed === null ? (by > 0 ? 0 : drawn.length - 1) : (pointed + by + drawn.length) % drawn.length;
    point(index);
    const found = mark(index);
    tell(found);
    output.textContent = `${found.text.replaceAll("\n", ", ")}.`;
  };
  const KEYS = {
    ArrowLeft: () => look({ turn: camera.turn - STEP }),
    ArrowRight: () => look({ turn: camera.turn + STEP }),
    ArrowUp: () => look({ tilt: camera.tilt + STEP }),
    ArrowDown: () => look({ tilt: camera.tilt - STEP }),
    "+": () => look({ zoom: camera.zoom / 0.9 }),
    "=": () => look({ zoom: camera.zoom / 0.9 }),
    "-": () => look({ zoom: camera.zoom * 0.9 }),
    Home: () => look(HOME),
    n: go(1),
    p: go(-1),
    Enter: () => pointed !== null && mark(pointed).pick && pick(plot, mark(pointed).pick),
  };
  plot.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // the theme turns pages with n and p
    stop();
    act();
  });
  stop();
  tools.append(button);
  if (isTouch()) tools.append(touchSwitch(plot));
  if (turning && !isStill() && !isTouch()) start();
  const degrees = (angle) => Math.round((angle * 180) / Math.PI);
  return {
    ...page,
    scene,
    eye,
    state: () => ({ turn: ((degrees(camera.turn) % 360) + 360) % 360, tilt: degrees(camera.tilt), zoom: written(camera.zoom) }),
    restore(view) {
      stop();
      const angle = (name) => (view[name] === undefined ? camera[name] : (Number(view[name]) * Math.PI) / 180);
      const [turn, tilt, zoom] = [angle("turn"), angle("tilt"), Number(view.zoom ?? 1)];
      if ([turn, tilt, zoom].every(Number.isFinite)) look({ turn, tilt, zoom });
    },
  };
}

/** On a touch screen a figure would catch the finger that scrolls the page, so it takes fingers only when asked to. */
function touchSwitch(plot) {
  const button = element("button", { type: "button", className: "md-button" });
  const set = (on) => {
    plot.classList.toggle("takes-fingers", on);
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Done: scroll the page again" : "Turn with a finger";
  };
  button.addEventListener("click", () => set(!plot.classList.contains("takes-fingers")));
  set(false);
  return button;
}

/** Return a slider over ranges of rows that follow one another; what is known of each is shown beside the plot. */
function rowSlider({ slider, rows, start }, plot, figure, onchange) {
  const shown = element("output", { className: "slider-value" });
  const input = element("input", { type: "range", min: 0, max: rows.length - 1, step: 1, value: start });
  const facts = element("dl", { className: "figure-facts" });
  const tell = () => {
    const { name, numbers } = rows[Number(input.value)];
    shown.textContent = name;
    input.setAttribute("aria-valuetext", [name, ...numbers.map(([what, number]) => `${what} ${number}`)].join(", "));
    facts.replaceChildren(
      ...numbers.map(([what, number]) =>
        element("div", {}, element("dt", { textContent: what }), element("dd", { textContent: number })),
      ),
    );
  };
  input.addEventListener("input", () => {
    tell();
    onchange(Number(input.value));
  });
  tell();
  plot.after(facts);
  figure.classList.add("has-facts");
  return [element("label", {}, `${slider} `, input), shown, input];
}

export function drawCurve(data, plot, tools, figure) {
  const { style, rows, colourings } = data;
  const state = { row: data.start, colouring: 0 };
  const output = spoken();
  const ofOneModel = !/(^|\/)data\/series\//.test(figure.dataset.interactive); // else a position has no page
  let made = null; // the scene, until rows, colouring or scheme change
  function scene() {
    const key = `${state.row} ${state.colouring} ${ink(style)}`;
    if (made?.key === key) return made;
    const { name, values, cyclic } = colourings[state.colouring];
    const { first, points, shares } = rows[state.row];
    const of = points[0].map((_, i) => values[first + i]);
    const [low, high] = [Math.min, Math.max].map((end) => end(...of.filter((value) => value !== null)));
    const stops = cyclic ? style.cycle : style.positions;
    const title = name === "position" ? "position (tokens)" : name;
    const line = {
      first,
      points,
      colours: of.map((value) => along(stops, (value - low) / (high - low || 1))),
      label: (i) => `position ${first + i}${name === "position" ? "" : `\n${name} ${written(of[i], 4)}`}`,
      pick: ofOneModel ? (i) => ({ kind: "position", index: first + i }) : null,
    };
    const axes = [0, 1, 2].map((i) => {
      if (data.axes) return data.axes[i];
      const share = shares?.[i] === undefined ? "" : ` (${(100 * shares[i]).toFixed(0)} %)`;
      return `PC ${i + 1}${share}`;
    });
    made = { key, lines: [line], axes, bar: { title, stops, low, high }, legend: null, of };
    return made;
  }
  let page = null;
  const inputs = {};
  const show = (what, i) => {
    state[what] = i;
    page.draw();
  };
  if (data.slider) {
    const [label, shown, input] = rowSlider(data, plot, figure, (i) => show("row", i));
    inputs.row = input;
    tools.append(label, shown);
  } else {
    const [label, select] = choice("Rows", rows.map(({ name }) => name), (i) => show("row", i));
    inputs.row = select;
    tools.append(label);
  }
  if (colourings.length > 1) {
    const [label, select] = choice("Color", colourings.map(({ name }) => name), (i) => show("colouring", i));
    inputs.colouring = select;
    tools.append(label);
  }
  page = turnable(plot, tools, output, style, scene, "turning" in figure.dataset);
  tools.append(output);
  describe(plot, figure, HOW_TO_TURN);
  return {
    ...page,
    state: () => ({ rows: state.row, colour: state.colouring, ...page.state() }),
    restore(view) {
      for (const [what, asked] of [["row", view.rows], ["colouring", view.colour]]) { // prettier-ignore
        const i = Number(asked);
        const known = what === "row" ? rows : colourings;
        if (asked === undefined || !known[i] || !inputs[what]) continue;
        inputs[what].value = i;
        inputs[what].dispatchEvent(new Event(data.slider && what === "row" ? "input" : "change"));
      }
      page.restore(view);
    },
    /** Return all numbers of the rows that are shown, one position a line. */
    csv() {
      const { first, points } = rows[state.row];
      const others = colourings.filter(({ name }) => name !== "position");
      return [
        ["position", "PC 1", "PC 2", "PC 3", ...others.map(({ name }) => name)],
        ...points[0].map((_, i) => [first + i, ...points.map((column) => column[i]), ...others.map(({ values }) => values[first + i])]),
      ];
    },
  };
}
