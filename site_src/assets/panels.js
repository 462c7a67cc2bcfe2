/* Lines side by side, to be pointed at: each point says its value and interval. A kind of figure for figures.js, which
   hands in what all kinds share. */
"use strict";

(window.atlasKinds ??= {}).panels = async (Plotly, data, plot, tools, figure, shared) => {
  const { spoken, onKeys, ink, faded, narrow, touch, describe, ARROWS, LAYOUT, FONT, CONFIG, literal } = shared;
  const { panels, linear_up_to: linear } = data;
  const state = { panel: 0, point: null };

  /** Return a value's place on the axis: linear up to a limit, by decades beyond, as in the picture. */
  function place(value) {
    const size = Math.abs(value) / linear;
    const steep = 1 / (1 - 1 / 10);
    return Math.sign(value) * (size <= 1 ? size * steep : steep + Math.log10(size));
  }
  const decades = [0, 1, 2, 3, 4].map((power) => linear * 10 ** power);
  const ends = panels.flatMap(({ low, high }) => [...low, ...high]).concat(data.marks);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const ticks = [...decades.map((value) => -value), 0, ...decades].filter((value) => value >= least && value <= most * 1.001);

  const written = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
  const told = ({ names, values, low, high }, i) =>
    `${names[i]}: ${data.value} ${written(values[i])} (95 % interval ${written(low[i])} to ${written(high[i])})`;

  /** Return a label in two lines of about the same length. */
  function inTwo(label) {
    const spaces = [...label.matchAll(/ /g)].map(({ index }) => index);
    const middle = spaces.sort((a, b) => Math.abs(a - label.length / 2) - Math.abs(b - label.length / 2))[0];
    return middle === undefined ? label : `${label.slice(0, middle)}<br>${label.slice(middle + 1)}`;
  }

  function traces() {
    const [colour] = data.style.colours;
    return panels.map((panel, k) => {
      const y = panel.values.map(place);
      const chosen = panel.values.map((_, i) => state.panel === k && state.point === i);
      return {
        type: "scatter",
        mode: "lines+markers",
        x: panel.amounts,
        y,
        xaxis: `x${k + 1}`,
        yaxis: `y${k + 1}`,
        error_y: {
          array: panel.high.map((high, i) => place(high) - y[i]),
          arrayminus: panel.low.map((low, i) => y[i] - place(low)),
          symmetric: false,
          thickness: 1.2,
          width: 3,
          color: colour,
        },
        text: panel.values.map((_, i) => literal(told(panel, i)).replace(": ", "<br>").replace(" (", "<br>(")),
        hovertemplate: "%{text}<extra></extra>",
        line: { color: colour, width: 1.5 },
        marker: {
          color: colour,
          size: chosen.map((is) => (is ? 12 : 7)),
          line: { color: ink(data.style), width: chosen.map((is) => (is ? 2 : 0)) },
        },
      };
    });
  }

  function layout() {
    const colour = ink(data.style);
    const below = narrow.matches;
    const count = panels.length;
    const gap = below ? 0.35 / count : 0.03;
    const extent = (1 - gap * (count - 1)) / count;
    const shown = { ...LAYOUT, font: { ...FONT, color: colour }, showlegend: false, hovermode: "closest", dragmode: false };
    shown.margin = { l: 60, r: 10, t: 10, b: below ? 50 : 65 };
    shown.shapes = [];
    panels.forEach((panel, k) => {
      const from = k * (extent + gap);
      const span = below ? [1 - from - extent, 1 - from] : [from, from + extent];
      shown[`xaxis${k + 1}`] = {
        type: "log",
        domain: below ? [0, 1] : span,
        anchor: `y${k + 1}`,
        title: { text: below ? panel.label : inTwo(panel.label), standoff: 6 },
        tickvals: panel.amounts,
        ticktext: panel.amounts.map(String),
        tickangle: 0,
        range: [Math.log10(panel.amounts[0]) - 0.12, Math.log10(panel.amounts.at(-1)) + 0.12],
        fixedrange: true,
        zeroline: false,
        gridcolor: faded(data.style, colour, 0.15),
      };
      shown[`yaxis${k + 1}`] = {
        domain: below ? span : [0, 1],
        anchor: `x${k + 1}`,
        title: { text: below ? data.value : k ? "" : data.y_label },
        tickvals: ticks.map(place),
        ticktext: ticks.map((value) => written(value)),
        showticklabels: below || k === 0,
        range: [place(least) - 0.25, place(most) + 0.25],
        fixedrange: true,
        zeroline: false,
        gridcolor: faded(data.style, colour, 0.15),
      };
      for (const mark of data.marks) {
        shown.shapes.push({
          type: "line",
          xref: `x${k + 1} domain`,
          yref: `y${k + 1}`,
          x0: 0,
          x1: 1,
          y0: place(mark),
          y1: place(mark),
          layer: "below",
          line: { color: faded(data.style, colour, 0.7), width: 1, dash: mark === 0 ? "solid" : "dot" },
        });
      }
    });
    return shown;
  }

  const output = spoken();
  function draw() {
    plot.style.height = narrow.matches ? `${panels.length * 12}rem` : "";
    return Plotly.react(plot, traces(), layout(), CONFIG);
  }
  function choose(panel, point) {
    Object.assign(state, { panel, point: Math.max(0, Math.min(panels[panel].values.length - 1, point)) });
    output.textContent = `${told(panels[panel], state.point)}.`;
    return draw();
  }
  onKeys(plot, ARROWS, (down, right) => {
    const panel = Math.max(0, Math.min(panels.length - 1, state.panel + down));
    choose(panel, state.point === null ? 0 : state.point + right);
  });
  tools.append(output);
  await draw();
  plot.on("plotly_click", ({ points: [{ curveNumber, pointNumber }] }) => choose(curveNumber, pointNumber));
  describe(plot, figure, "left and right arrow keys go from point to point, up and down from panel to panel.");
  output.textContent = touch.matches
    ? "Tap a dot for its value and interval."
    : "Point at a dot, or go through them with the arrow keys, for its value and interval.";
  return draw;
};
