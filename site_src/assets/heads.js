/* Heads as a grid of layers and heads; the one that is chosen shows where it looks, as lines by offset. A kind of figure
   for figures.js, which hands in what all kinds share. */
"use strict";

(window.atlasKinds ??= {}).heads = async (Plotly, data, plot, tools, figure, shared) => {
  const { choice, spoken, onKeys, ink, faded, narrow, describe, ARROWS, LAYOUT, FONT, CONFIG } = shared;
  const layers = data.grids[0].values.length;
  const heads = data.grids[0].values[0].length;
  const all = data.grids[0].values.flat();
  const state = { head: all.indexOf(Math.max(...all)), grid: 0 };
  const at = (index) => [Math.floor(index / heads), index % heads];
  const called = (index) => `L${at(index)[0]}H${at(index)[1]}`;
  const DASHES = ["solid", "dash", "dot"];

  function traces() {
    const { name, values } = data.grids[state.grid];
    const below = narrow.matches;
    const grid = {
      type: "heatmap",
      z: values,
      zmin: 0,
      zmax: 1,
      colorscale: "Viridis",
      hovertemplate: `L%{y}H%{x}<br>${name} %{z}<extra></extra>`,
      colorbar: {
        title: { text: data.label, side: "top" },
        orientation: "h",
        x: below ? 0.5 : 0.2,
        xanchor: "center",
        y: 1,
        yanchor: "bottom",
        thickness: 10,
        len: below ? 0.9 : 0.38,
        tickvals: [0, 0.25, 0.5, 0.75, 1],
        tickcolor: ink(data.style),
      },
    };
    const lines = data.lines.map((line, i) => ({
      type: "scatter",
      mode: "lines+markers",
      name: line.name,
      x: line.offsets,
      y: line.weights[state.head],
      xaxis: "x2",
      yaxis: "y2",
      hovertemplate: `offset %{x}<br>${line.name} %{y}<extra></extra>`,
      line: { color: data.style.colours[i], width: 2, dash: DASHES[i % DASHES.length] },
      marker: { color: data.style.colours[i], size: 5, symbol: ["circle", "square", "diamond"][i % 3] },
    }));
    return [grid, ...lines];
  }

  function layout() {
    const colour = ink(data.style);
    const below = narrow.matches;
    const axis = (title, more) => ({
      title: { text: title },
      tickangle: 0,
      fixedrange: true,
      zeroline: false,
      gridcolor: faded(data.style, colour, 0.15),
      ...more,
    });
    const beneath = (text) => ({ title: { text, standoff: 40 } }); // room for the numbers between
    const whole = (count) => ({ showgrid: false, tick0: 0, dtick: Math.ceil(count / 12) });
    const [layer, head] = at(state.head);
    return {
      ...LAYOUT,
      font: { ...FONT, color: colour },
      margin: { l: 50, r: 10, t: 72, b: 52, autoexpand: false },
      xaxis: axis("", { ...beneath("head"), ...whole(heads), domain: below ? [0, 1] : [0, 0.4] }),
      yaxis: axis("layer", { ...whole(layers), autorange: "reversed", domain: below ? [0.6, 1] : [0, 1] }),
      xaxis2: axis("", { ...beneath("offset: tokens back from the query"), anchor: "y2", domain: below ? [0, 1] : [0.52, 1] }),
      yaxis2: axis("mean attention", { anchor: "x2", rangemode: "tozero", domain: below ? [0, 0.37] : [0, 1] }),
      shapes: [
        {
          type: "rect",
          x0: head - 0.5,
          x1: head + 0.5,
          y0: layer - 0.5,
          y1: layer + 0.5,
          line: { color: data.style.colours[1], width: 3 },
        },
        {
          type: "line",
          xref: "x2",
          yref: "y2 domain",
          x0: 1,
          x1: 1,
          y0: 0,
          y1: 1,
          layer: "below",
          line: { color: faded(data.style, colour, 0.6), width: 1, dash: "dot" },
        },
      ],
      showlegend: true,
      legend: below
        ? { orientation: "h", x: 0, y: 0.385, yanchor: "bottom" }
        : { orientation: "h", x: 1, xanchor: "right", y: 1.01, yanchor: "bottom" },
      hovermode: "closest",
      dragmode: false,
    };
  }

  const output = spoken();
  const names = all.map((_, index) => called(index));
  const [headLabel, headSelect] = choice("Head", names, (index) => choose(index));
  function draw() {
    return Plotly.react(plot, traces(), layout(), CONFIG);
  }
  /** Choose a head: say its weights on the previous token, and draw its lines. */
  function choose(index) {
    state.head = index;
    headSelect.value = index;
    const said = data.lines.map(({ name, offsets, weights }) => {
      const weight = weights[index][offsets.indexOf(1)];
      return `${name} ${weight === undefined || weight === null ? "–" : weight.toFixed(3)}`;
    });
    output.textContent = `${called(index)} gives the previous token: ${said.join(", ")}.`;
    return draw();
  }
  onKeys(plot, ARROWS, (...step) => {
    const [layer, head] = at(state.head).map((place, i) => place + step[i]);
    if (layer >= 0 && layer < layers && head >= 0 && head < heads) choose(layer * heads + head);
  });
  tools.append(headLabel);
  if (data.grids.length > 1) {
    const [gridLabel] = choice("Colour", data.grids.map(({ name }) => name), (i) => ((state.grid = i), draw()));
    tools.append(gridLabel);
  }
  tools.append(output);
  await choose(state.head);
  plot.on("plotly_click", ({ points: [{ curveNumber, x, y }] }) => curveNumber === 0 && choose(y * heads + x));
  describe(plot, figure, "arrow keys go from head to head; the lines are those of the chosen one.");
  return draw;
};
