/* What figures are drawn with: one pen for the screen (a canvas) and one for a file (SVG) that know the same strokes,
   a sheet that fills its place and stays sharp, ticks, numbers, colours. No figure draws in any other way. */

import { element, isDark } from "./dom.js";
import { ticks, written } from "./numbers.js";

/**
 * @typedef {{ ink: string, ink_dark: string, page: string, page_dark: string, colours: string[], positions: string[], cycle: string[] }} Style
 * @typedef {[number, number]} Point in pixels
 * @typedef {{ fill?: string, stroke?: string, width?: number, dash?: number[], alpha?: number }} Look of a stroke
 * @typedef {{ fill: string, size?: number, align?: "left" | "center" | "right", baseline?: "top" | "middle" | "bottom" | "alphabetic", angle?: number, halo?: string | null }} Lettering
 * @typedef {CanvasPen | SvgPen} Pen
 * @typedef {{ left: number, top: number, right: number, bottom: number }} Box
 * @typedef {{ title: string | string[], ticks: number[], at: (value: number) => number, label?: (value: number) => string, bare?: boolean, unlabelled?: boolean }} Axis
 * @typedef {{ x: number, y: number, text: string, pick?: unknown }} Mark that a pointer reaches
 * @typedef {ReturnType<typeof sheet>} Sheet
 * @typedef {Sheet & { csv(): unknown[][], state(): Record<string, unknown>, restore(view: Record<string, string>): void }} Drawn what a figure shows
 * @typedef {HTMLElement & { atlas: Drawn }} LiveFigure
 */

// Beyond the system's own font: those that have a sign for a space, and for control characters.
const FONT =
  'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", "Noto Sans", "Segoe UI Symbol", "Apple Symbols", ' +
  '"Noto Sans Symbols", "Noto Sans Symbols 2", sans-serif';
const SIZE = 13; // pixels of text
const SMALLEST = 9; // of text that would not fit
const SHARPEST = 2; // pixels of a canvas per pixel of the page
const NEAR = 14; // pixels from which a pointer reaches a mark

export const ink = (/** @type {Style} */ style) => (isDark() ? style.ink_dark : style.ink);
export const page = (/** @type {Style} */ style) => (isDark() ? style.page_dark : style.page);
const parts = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
const hex = (values) => `#${values.map((value) => Math.round(value).toString(16).padStart(2, "0")).join("")}`;
const mixed = (one, other, share) => hex(parts(one).map((value, i) => (1 - share) * value + share * parts(other)[i]));
/** Return a colour thinned towards the page's. */
export const faded = (style, colour, share) => mixed(page(style), colour, share);
/** Return the colour at a share of the way along stops. */
export function along(stops, share) {
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const from = Math.min(Math.floor(at), stops.length - 2);
  return mixed(stops[from], stops[from + 1], at - from);
}

/** Return a token's name with the one sign for a space that fonts have. */
export const shown = (name) => name.replaceAll("\u2420", "\u2423");

/* Pens. Every stroke takes places in pixels and a look: { fill, stroke, width, dash, alpha }. */

const ALIGN = { left: "start", center: "middle", right: "end" };
const BASELINE = { top: 0.8, middle: 0.32, bottom: -0.2, alphabetic: 0 }; // of the text's size

class CanvasPen {
  constructor(context) {
    this.context = context;
  }
  #paint({ fill, stroke, width = 1, dash = [], alpha = 1 }) {
    const { context } = this;
    context.globalAlpha = alpha;
    if (fill) {
      context.fillStyle = fill;
      context.fill();
    }
    if (stroke) {
      context.strokeStyle = stroke;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.stroke();
    }
    context.globalAlpha = 1;
  }
  /** A line through points, each [x, y]. */
  line(points, look) {
    this.context.beginPath();
    points.forEach(([x, y], i) => (i ? this.context.lineTo(x, y) : this.context.moveTo(x, y)));
    this.#paint(look);
  }
  circle(x, y, radius, look) {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.#paint(look);
  }
  rect(x, y, width, height, look) {
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.#paint(look);
  }
  text(string, x, y, { fill, size = SIZE, align = "left", baseline = "alphabetic", angle = 0, halo = null }) {
    const { context } = this;
    context.save();
    context.translate(x, y);
    context.rotate(angle);
    context.font = `${size}px ${FONT}`;
    context.textAlign = align;
    if (halo) {
      Object.assign(context, { strokeStyle: halo, lineWidth: 3, lineJoin: "round" });
      context.strokeText(string, 0, BASELINE[baseline] * size);
    }
    context.fillStyle = fill;
    context.fillText(string, 0, BASELINE[baseline] * size);
    context.restore();
  }
  within(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }
}

const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
const places = (value) => Number(value.toFixed(2));

class SvgPen {
  parts = [];
  clips = 0;
  #look({ fill, stroke, width = 1, dash = [], alpha = 1 }) {
    const said = [`fill="${fill ?? "none"}"`];
    if (stroke) said.push(`stroke="${stroke}" stroke-width="${width}"`);
    if (stroke && dash.length) said.push(`stroke-dasharray="${dash.join(" ")}"`);
    if (alpha < 1) said.push(`opacity="${alpha}"`);
    return said.join(" ");
  }
  line(points, look) {
    const through = points.map(([x, y]) => `${places(x)},${places(y)}`).join(" ");
    this.parts.push(`<polyline points="${through}" ${this.#look(look)}/>`);
  }
  circle(x, y, radius, look) {
    this.parts.push(`<circle cx="${places(x)}" cy="${places(y)}" r="${places(radius)}" ${this.#look(look)}/>`);
  }
  rect(x, y, width, height, look) {
    const [left, top, wide, high] = [x, y, width, height].map(places);
    this.parts.push(`<rect x="${left}" y="${top}" width="${wide}" height="${high}" ${this.#look(look)}/>`);
  }
  text(string, x, y, { fill, size = SIZE, align = "left", baseline = "alphabetic", angle = 0, halo = null }) {
    const turned = angle ? ` rotate(${places((angle * 180) / Math.PI)})` : "";
    const around = halo ? ` stroke="${halo}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"` : "";
    this.parts.push(
      `<text transform="translate(${places(x)} ${places(y)})${turned}" y="${places(BASELINE[baseline] * size)}" ` +
        `font-size="${size}" text-anchor="${ALIGN[align]}" fill="${fill}"${around}>${escaped(string)}</text>`,
    );
  }
  within(x, y, width, height, draw) {
    const name = `clip${++this.clips}`;
    this.parts.push(`<clipPath id="${name}"><rect x="${x}" y="${y}" width="${width}" height="${height}"/></clipPath>`);
    this.parts.push(`<g clip-path="url(#${name})">`);
    draw();
    this.parts.push("</g>");
  }
  /** Return the whole file, on a page of some colour. */
  file(width, height, background, title) {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
      `font-family="${escaped(FONT)}"><title>${escaped(title)}</title>` +
      `<rect width="100%" height="100%" fill="${background}"/>${this.parts.join("")}</svg>\n`
    );
  }
}

/** @type {CanvasRenderingContext2D | null} */
let measuring = null; // the pen that measures texts
/** @param {HTMLCanvasElement} canvas */
export function pen2d(canvas) {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser has no canvas");
  return context;
}

/** Return how wide a text is, in pixels.
 * @param {string} text
 */
export function wide(text, size = SIZE) {
  measuring ??= pen2d(document.createElement("canvas"));
  measuring.font = `${size}px ${FONT}`;
  return measuring.measureText(text).width;
}

/** Return a text in lines that fit.
 * @param {string} text
 * @param {number} width
 */
export function inLines(text, width) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && wide(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/* A sheet */

/** Let `paint(pen, width, height)` fill a place, now and whenever its size changes. Return the sheet.

    `draw` asks for a new picture with the next frame, however often it is called before it.
 * @param {HTMLElement} plot
 * @param {Style} style
 * @param {(pen: Pen, width: number, height: number) => void} paint
 */
export function sheet(plot, style, paint) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true"); // the plot around it has the words
  const context = pen2d(canvas);
  plot.append(canvas);
  const size = { width: 0, height: 0 };
  let asked = null;
  function now() {
    asked = null;
    if (!size.width || !size.height) return;
    const sharp = Math.min(SHARPEST, devicePixelRatio || 1);
    const [across, down] = [size.width, size.height].map((length) => Math.round(length * sharp));
    if (canvas.width !== across || canvas.height !== down) Object.assign(canvas, { width: across, height: down });
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.clearRect(0, 0, size.width, size.height);
    paint(new CanvasPen(context), size.width, size.height);
  }
  const draw = () => (asked ??= requestAnimationFrame(now));
  const resized = new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    if (width === size.width && height === size.height) return;
    Object.assign(size, { width, height });
    now();
  });
  resized.observe(plot);
  return {
    draw,
    size,
    /** Return the picture as the text of an SVG file. */
    svg(title) {
      const pen = new SvgPen();
      paint(pen, size.width, size.height);
      return pen.file(size.width, size.height, page(style), title);
    },
    /** Return the picture as a PNG file, twice as fine as on the page. */
    png() {
      const large = document.createElement("canvas");
      Object.assign(large, { width: size.width * SHARPEST, height: size.height * SHARPEST });
      const drawn = pen2d(large);
      drawn.scale(SHARPEST, SHARPEST);
      drawn.fillStyle = page(style);
      drawn.fillRect(0, 0, size.width, size.height);
      paint(new CanvasPen(drawn), size.width, size.height);
      return new Promise((resolve) => large.toBlob(resolve, "image/png"));
    },
  };
}

/* Pointing */

/** Say that a reader chose what a mark stands for; who shows things listens. */
export const pick = (plot, detail) => plot.dispatchEvent(new CustomEvent("atlas:pick", { bubbles: true, detail }));

/** Let a pointer tell what is under it. `nearest(x, y, reach)` returns { x, y, text, pick } in pixels, or null.

    Return `tell`, which shows the words beside a mark, or hides them.
 * @template {Mark} M
 * @param {HTMLElement} plot
 * @param {(x: number, y: number, reach: number) => M | null} nearest
 * @param {(mark: M) => void} chosen
 */
export function pointing(plot, nearest, chosen = () => {}) {
  const tip = element("div", { className: "figure-tip", hidden: true });
  plot.append(tip);
  /** @type {Point | null} */
  let pressed = null;
  /** @param {Mark | null} mark */
  function tell(mark) {
    tip.hidden = !mark;
    if (!mark) return;
    tip.replaceChildren(...mark.text.split("\n").map((line) => element("div", { textContent: line })));
    const { clientWidth: width, clientHeight: height } = plot;
    const left = mark.x + 12 + tip.offsetWidth > width ? mark.x - 12 - tip.offsetWidth : mark.x + 12;
    tip.style.left = `${Math.max(0, left)}px`;
    tip.style.top = `${Math.max(0, Math.min(height - tip.offsetHeight, mark.y - tip.offsetHeight / 2))}px`;
  }
  const under = (event) => {
    const { left, top } = plot.getBoundingClientRect();
    return nearest(event.clientX - left, event.clientY - top, event.pointerType === "touch" ? 2 * NEAR : NEAR);
  };
  plot.addEventListener("pointermove", (event) => {
    if (event.buttons && event.pointerType !== "touch") return tell(null);
    const mark = under(event);
    plot.classList.toggle("is-over", Boolean(mark?.pick));
    tell(mark);
  });
  plot.addEventListener("pointerleave", () => tell(null));
  plot.addEventListener("pointerdown", (event) => (pressed = [event.clientX, event.clientY]));
  plot.addEventListener("click", (event) => {
    if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4) return; // it was dragged
    const mark = under(event);
    tell(mark);
    if (!mark) return;
    chosen(mark);
    if (mark.pick) pick(plot, mark.pick);
  });
  return tell;
}

/** Return which of n points lies nearest, -1 where none is within reach.
 * @param {number} n
 * @param {(i: number) => Point} at
 * @param {number} x
 * @param {number} y
 * @param {number} reach
 */
export function nearestOf(n, at, x, y, reach) {
  let [best, least] = [-1, reach * reach];
  for (let i = 0; i < n; i++) {
    const [left, top] = at(i);
    const distance = (left - x) ** 2 + (top - y) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

/* Axes of a plane */

/** Draw ticks, grid and titles around a box. Each axis is { title, ticks, at, label }: values, where one is in
    pixels, and how it is written.
 * @param {Pen} pen
 * @param {Style} style
 * @param {Box} box
 * @param {Axis} x
 * @param {Axis} y
 */
export function axes(pen, style, { left, top, right, bottom }, x, y) {
  const colour = ink(style);
  const grid = { stroke: faded(style, colour, 0.15), width: 1 };
  for (const value of x.ticks) {
    const at = Math.round(x.at(value)) + 0.5;
    if (!x.bare) pen.line([[at, top], [at, bottom]], grid); // prettier-ignore
    pen.text((x.label ?? written)(value), at, bottom + 5, { fill: colour, align: "center", baseline: "top" });
  }
  let widest = 0;
  for (const value of y.ticks) {
    const at = Math.round(y.at(value)) + 0.5;
    if (!y.bare) pen.line([[left, at], [right, at]], grid); // prettier-ignore
    if (y.unlabelled) continue;
    const label = (y.label ?? written)(value);
    widest = Math.max(widest, wide(label));
    pen.text(label, left - 6, at, { fill: colour, align: "right", baseline: "middle" });
  }
  const lines = [x.title].flat();
  lines.forEach((line, i) =>
    pen.text(line, (left + right) / 2, bottom + 22 + i * 15, { fill: colour, align: "center", baseline: "top" }),
  );
  if (y.title) {
    const middle = (top + bottom) / 2;
    const size = Math.max(SMALLEST, SIZE * Math.min(1, (2 * middle) / wide(String(y.title)))); // the picture's edge is at 0
    const place = { fill: colour, size, align: "center", baseline: "bottom", angle: -Math.PI / 2 };
    pen.text(y.title, left - widest - 12, middle, place);
  }
}

/** Draw names of colours in rows from a place on; return how high they are. Each is [name, colour, mark].
 * @param {Pen} pen
 * @param {Style} style
 * @param {[string, string, (number[] | "dot")?][]} entries
 * @param {number} left
 * @param {number} top
 * @param {number} right
 */
export function legend(pen, style, entries, left, top, right) {
  let [x, y] = [left, top];
  for (const [name, colour, mark = "dot"] of entries) {
    const across = 22 + wide(name) + 16;
    if (x > left && x + across > right) [x, y] = [left, y + 18];
    if (mark === "dot") pen.circle(x + 8, y + 8, 5, { fill: colour });
    else pen.line([[x, y + 8], [x + 18, y + 8]], { stroke: colour, width: 2, dash: mark }); // prettier-ignore
    pen.text(name, x + 22, y + 8, { fill: ink(style), baseline: "middle" });
    x += across;
  }
  return y + 18 - top;
}

/** Draw a scale of colours lying, with its title above and numbers below.
 * @param {Pen} pen
 * @param {Style} style
 * @param {{ title: string, stops: string[], low: number, high: number, values?: number[] }} bar
 * @param {number} left
 * @param {number} top
 * @param {number} width
 */
export function colourBar(pen, style, { title, stops, low, high, values }, left, top, width) {
  const colour = ink(style);
  pen.text(title, left + width / 2, top, { fill: colour, align: "center", baseline: "top" });
  const steps = Math.max(2, Math.round(width / 3));
  for (let i = 0; i < steps; i++) {
    pen.rect(left + (i * width) / steps, top + 18, width / steps + 0.5, 9, { fill: along(stops, i / (steps - 1)) });
  }
  for (const value of values ?? ticks(low, high, Math.min(6, width / 70))) {
    const at = left + (width * (value - low)) / (high - low || 1);
    pen.line([[at, top + 27], [at, top + 31]], { stroke: colour, width: 1 }); // prettier-ignore
    pen.text(written(value), at, top + 33, { fill: colour, align: "center", baseline: "top" });
  }
}
