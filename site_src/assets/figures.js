/* Pictures that can be turned, pointed at and searched. Each stands on a page as a picture; when one comes into view,
   Plotly and that figure's numbers are fetched (both from this site) and take its place. Without scripts, without
   WebGL, in print or when anything fails, the picture stays. */
"use strict";

(() => {
  const here = document.currentScript.src;
  const STEP = Math.PI / 36; // a key press turns by five degrees
  const TURN = 0.006; // radians a frame, about one turn in 17 seconds
  const RINGED = 24; // matches that are named in the figure
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const touch = matchMedia("(pointer: coarse)");
  const narrow = matchMedia("(max-width: 44.9em)");

  let plotly;
  /** Load Plotly once, however many figures ask. */
  function loadPlotly() {
    plotly ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("plotly.min.js", here);
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => reject(new Error("Plotly can't be loaded"));
      document.head.append(script);
    });
    return plotly;
  }

  const isDark = () => document.body.dataset.mdColorScheme === "slate";
  const ink = (style) => (isDark() ? style.ink_dark : style.ink);
  const channels = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  /** Return a colour thinned towards the page's. Opaque, as WebGL draws see-through lines too bright on dark pages. */
  function faded(style, colour, share) {
    const page = channels(isDark() ? style.page_dark : style.page);
    return `rgb(${channels(colour).map((value, i) => Math.round(share * value + (1 - share) * page[i]))})`;
  }
  const scale = (stops) => stops.map((colour, i) => [i / (stops.length - 1), colour]);

  /** Return text that Plotly shows as it is: it reads some HTML in labels. Isolated, so that it reorders nothing. */
  const literal = (text) =>
    `\u2068${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")}\u2069`;

  function canDraw3D() {
    const canvas = document.createElement("canvas");
    return Boolean(canvas.getContext("webgl2") ?? canvas.getContext("webgl"));
  }

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  function choice(label, options, onchange) {
    const select = element("select", { onchange: () => onchange(Number(select.value)) });
    options.forEach((name, i) => select.append(element("option", { value: i, textContent: name })));
    return [element("label", {}, `${label} `, select), select];
  }

  /** Return a place for what a figure says; screen readers say it, too. */
  function spoken() {
    const output = element("output", { className: "found" });
    output.setAttribute("aria-live", "polite");
    return output;
  }

  /** Let keys act on a plot, each with its arguments; with Ctrl, Alt or Meta they stay the browser's. */
  function onKeys(plot, keys, act) {
    plot.addEventListener("keydown", (event) => {
      const change = keys[event.key];
      if (!change || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      act(...change);
    });
  }
  const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }; // rows, columns

  const LAYOUT = {
    autosize: true,
    margin: { l: 0, r: 0, t: 0, b: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
  };
  const CONFIG = { displaylogo: false, responsive: true, displayModeBar: false };
  const FONT = { family: "system-ui, sans-serif", size: 12 };

  /* Curves in three dimensions */

  /** Return traces for a range of rows in a colouring. A frame of several curves gives each its own colour. */
  function curveTraces(data, row, colouring) {
    const { name, values, cyclic } = data.colourings[colouring];
    const { first, points } = data.rows[row];
    const [x, y, z] = points;
    const positions = x.map((_, i) => first + i);
    const colours = positions.map((position) => values[position]);
    const measured = name === "position" ? "" : `<br>${name} %{marker.color:.4~g}`;
    return [
      {
        type: "scatter3d",
        mode: "lines+markers",
        x,
        y,
        z,
        customdata: positions,
        hovertemplate: `position %{customdata}${measured}<extra></extra>`,
        line: { color: faded(data.style, ink(data.style), 0.2), width: 1 },
        marker: {
          size: 3,
          color: colours,
          colorscale: scale(cyclic ? data.style.cycle : data.style.positions),
          colorbar: {
            title: { text: name === "position" ? "position (tokens)" : name, side: "top" },
            orientation: "h",
            y: 0,
            yanchor: "top",
            thickness: 10,
            len: 0.8,
            tickcolor: ink(data.style),
          },
        },
      },
    ];
  }

  function curveLayout(style, axes, camera) {
    const axis = (title) => ({
      title: { text: title, font: { size: 12 } },
      showticklabels: false,
      ticks: "",
      showbackground: false,
      showspikes: false,
      gridcolor: faded(style, ink(style), 0.15),
      zerolinecolor: faded(style, ink(style), 0.25),
    });
    return {
      ...LAYOUT,
      showlegend: false,
      font: { ...FONT, color: ink(style) },
      margin: { l: 0, r: 0, t: 0, b: 50 },
      scene: {
        xaxis: axis(axes[0]),
        yaxis: axis(axes[1]),
        zaxis: axis(axes[2]),
        aspectmode: "cube",
        dragmode: "orbit",
        camera,
      },
    };
  }

  const EYE = { x: 1.45, y: 1.45, z: 1 };

  /** Turn a camera about the vertical, tilt it, move it closer (a factor below 1) or away. */
  function moved({ eye, up, center }, turn, tilt = 0, distance = 1) {
    const radius = Math.hypot(eye.x, eye.y, eye.z) * distance;
    const around = Math.atan2(eye.y, eye.x) + turn;
    const height = Math.asin(eye.z / Math.hypot(eye.x, eye.y, eye.z)) + tilt;
    const bounded = Math.max(-1.5, Math.min(1.5, height));
    return {
      up,
      center,
      eye: {
        x: radius * Math.cos(bounded) * Math.cos(around),
        y: radius * Math.cos(bounded) * Math.sin(around),
        z: radius * Math.sin(bounded),
      },
    };
  }

  const KEYS = {
    ArrowLeft: [-STEP],
    ArrowRight: [STEP],
    ArrowUp: [0, STEP],
    ArrowDown: [0, -STEP],
    "+": [0, 0, 0.9],
    "=": [0, 0, 0.9],
    "-": [0, 0, 1 / 0.9],
  };

  /** Make a drawn curve turn by keys, by a button and, on touch screens, only when asked. Return how to stop it. */
  function makeTurnable(Plotly, plot, tools, turning) {
    let camera = { eye: { ...EYE }, up: { x: 0, y: 0, z: 1 }, center: { x: 0, y: 0, z: 0 } };
    let frame = null;
    let moving = false;
    plot.on("plotly_relayout", (change) => {
      if (change["scene.camera"]) camera = change["scene.camera"];
    });
    const look = (next) => {
      camera = next;
      plot.dataset.eye = [camera.eye.x, camera.eye.y, camera.eye.z].map((v) => v.toFixed(3)).join(" ");
      moving = true;
      return Plotly.relayout(plot, { "scene.camera": camera }).finally(() => (moving = false));
    };
    const button = element("button", { type: "button", className: "md-button turn" });
    const visible = () => !document.hidden && plot.isConnected;
    function step() {
      if (!plot.isConnected) return stop();
      if (!moving && visible()) look(moved(camera, TURN * 2));
      frame = requestAnimationFrame(step);
    }
    function stop() {
      cancelAnimationFrame(frame);
      frame = null;
      button.textContent = "Turn";
      button.setAttribute("aria-pressed", "false");
    }
    function start() {
      button.textContent = "Stop turning";
      button.setAttribute("aria-pressed", "true");
      step();
    }
    button.addEventListener("click", () => (frame === null ? start() : stop()));
    plot.addEventListener("pointerdown", stop);
    onKeys(plot, { ...KEYS, Home: [] }, (...change) => {
      look(change.length ? moved(camera, ...change) : { ...camera, eye: { ...EYE } });
      stop();
    });
    stop();
    tools.append(button);
    if (touch.matches) tools.append(touchSwitch(plot));
    if (turning && !still.matches && !touch.matches) start();
    return stop;
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

  const HOW_TO_TURN = "arrow keys turn it, plus and minus move closer and away, Home returns.";

  async function drawCurve(Plotly, data, plot, tools, figure) {
    const state = { row: 0, colouring: 0 };
    const titles = () =>
      [0, 1, 2].map((i) => {
        const shares = data.rows[state.row].shares;
        if (data.axes) return data.axes[i];
        return `PC ${i + 1}${shares && shares[i] !== undefined ? ` (${(100 * shares[i]).toFixed(0)} %)` : ""}`;
      });
    const draw = () => {
      const camera = plot.layout?.scene?.camera ?? { eye: { ...EYE } };
      const layout = curveLayout(data.style, titles(), camera);
      return Plotly.react(plot, curveTraces(data, state.row, state.colouring), layout, CONFIG);
    };
    const showRows = (i) => ((state.row = i), draw());
    const names = data.rows.map((rows) => rows.name);
    if (data.slider) tools.append(...rowSlider(data, plot, figure, showRows));
    else tools.append(choice("Rows", names, showRows)[0]);
    if (data.colourings.length > 1) {
      const [label] = choice("Colour", data.colourings.map((c) => c.name), (i) => ((state.colouring = i), draw()));
      tools.append(label);
    }
    await draw();
    describe(plot, figure, HOW_TO_TURN);
    makeTurnable(Plotly, plot, tools, "turning" in figure.dataset);
    return draw;
  }

  /** Return a slider over ranges of rows that follow one another; what is known of each is told beside the plot. */
  function rowSlider({ slider, rows }, plot, figure, onchange) {
    const shown = element("output", { className: "slider-value" });
    const input = element("input", { type: "range", min: 0, max: rows.length - 1, step: 1, value: 0 });
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
    return [element("label", {}, `${slider} `, input), shown];
  }

  /** Give a plot a name, and a place in the order of the Tab key. */
  function describe(plot, figure, how) {
    const picture = figure.querySelector("img");
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    plot.setAttribute("aria-label", `${picture?.alt ?? figure.dataset.label ?? ""} Interactive: ${how}`);
  }

  /* Tokens in a plane */

  const called = (group, i) => (group.names ? group.names[i] : `#${group.ids[i]}`);

  function scatterTraces(data, found) {
    const colours = data.style.colours;
    const many = data.groups.reduce((sum, group) => sum + group.ids.length, 0) > 800;
    const traces = data.groups.map((group) => ({
      type: "scatter",
      mode: "markers",
      name: group.name,
      x: group.x,
      y: group.y,
      text: group.ids.map((id, i) => `${literal(called(group, i))}<br>id ${id}`),
      hovertemplate: `%{text}<br>${data.x_label} %{x}<br>${data.y_label} %{y}<extra>${group.name}</extra>`,
      marker: { color: colours[group.colour % colours.length], size: many ? 3.5 : 6, opacity: found.length ? 0.25 : 0.6 },
    }));
    if (data.named.length && !found.length) {
      traces.push({
        type: "scatter",
        mode: "markers+text",
        showlegend: false,
        hoverinfo: "skip",
        x: data.named.map(([x]) => x),
        y: data.named.map(([, y]) => y),
        text: data.named.map(([, , name]) => literal(name)),
        textposition: "middle right",
        cliponaxis: false,
        marker: { color: "rgba(0,0,0,0)", size: 8, line: { color: ink(data.style), width: 1 } },
      });
    }
    traces.push({
      type: "scatter",
      mode: "markers+text",
      name: "found",
      showlegend: false,
      x: found.map((one) => one.x),
      y: found.map((one) => one.y),
      text: found.map((one, i) => (i < RINGED ? literal(one.name) : "")),
      textposition: "top center",
      hovertemplate: "%{customdata}<br>%{x}, %{y}<extra></extra>",
      customdata: found.map((one) => `${literal(one.name)}<br>id ${one.id}`),
      marker: { color: "rgba(0,0,0,0)", size: 11, line: { color: ink(data.style), width: 2 } },
    });
    return traces;
  }

  function scatterLayout(data) {
    const colour = ink(data.style);
    const axis = (title) => ({
      title: { text: title },
      gridcolor: faded(data.style, colour, 0.15),
      zerolinecolor: faded(data.style, colour, 0.25),
      automargin: true,
    });
    return {
      ...LAYOUT,
      font: { ...FONT, color: colour },
      margin: { l: 10, r: 10, t: 10, b: 10 },
      xaxis: axis(data.x_label),
      yaxis: axis(data.y_label),
      showlegend: data.groups.length > 1,
      legend: { orientation: "h", y: 1, yanchor: "bottom", itemsizing: "constant" },
      shapes: data.diagonal ? [diagonal(data, colour)] : [],
      hovermode: "closest",
      dragmode: touch.matches ? false : "zoom",
    };
  }

  /** Return the line on which both coordinates are equal, as far as there are tokens. */
  function diagonal({ groups }, color) {
    const [low, high] = [Math.min, Math.max].map((end) => end(...groups.flatMap(({ x, y }) => [end(...x), end(...y)])));
    return { type: "line", x0: low, y0: low, x1: high, y1: high, line: { color, width: 1, dash: "dash" } };
  }

  /** Return the tokens whose name holds the text, those that are the text first. A space may be typed for ␠. */
  function search(data, text) {
    const wanted = text.toLowerCase();
    if (!wanted) return [];
    const spaced = wanted.replaceAll(" ", "\u2420");
    const found = [];
    for (const group of data.groups) {
      group.ids.forEach((id, i) => {
        const name = called(group, i);
        const low = name.toLowerCase();
        if (low.includes(wanted) || low.includes(spaced) || String(id) === wanted) {
          found.push({ id, name, x: group.x[i], y: group.y[i], group: group.name, exact: low === wanted || low === spaced });
        }
      });
    }
    return found.sort((a, b) => b.exact - a.exact || a.id - b.id);
  }

  async function drawScatter(Plotly, data, plot, tools, figure) {
    const drawn = data.groups.reduce((sum, group) => sum + group.ids.length, 0);
    let found = [];
    const draw = () => Plotly.react(plot, scatterTraces(data, found), scatterLayout(data), CONFIG);
    const output = spoken();
    const input = element("input", { type: "search", autocomplete: "off", spellcheck: false });
    let waiting;
    function find() {
      found = search(data, input.value.trim() ? input.value : "");
      const sample = drawn < data.n_tokens ? ` (a sample of the vocabulary of ${data.n_tokens})` : "";
      output.replaceChildren();
      if (input.value && !found.length) output.append(`None of the ${drawn} tokens drawn${sample}.`);
      else if (found.length) {
        output.append(`${found.length} of the ${drawn} tokens drawn${sample}: `);
        found.slice(0, 6).forEach((one, i) => {
          const name = element("bdi", {}, element("code", { textContent: one.name }));
          output.append(i ? ", " : "", name, ` (id ${one.id}, at ${one.x}, ${one.y})`);
        });
        if (found.length > 6) output.append(", …");
      }
      draw();
    }
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(find, 150);
    });
    const reset = element("button", { type: "button", className: "md-button", textContent: "Whole view" });
    reset.addEventListener("click", () => Plotly.relayout(plot, { "xaxis.autorange": true, "yaxis.autorange": true }));
    tools.append(element("label", {}, "Find a token ", input), reset, output);
    await draw();
    describe(plot, figure, "the field above it finds tokens by name; plus and minus zoom.");
    onKeys(plot, { "+": [0.8], "=": [0.8], "-": [1.25] }, (factor) => {
      Plotly.relayout(plot, Object.assign(...["xaxis", "yaxis"].map((name) => zoomed(plot, name, factor))));
    });
    return draw;
  }

  function zoomed(plot, name, factor) {
    const [low, high] = plot._fullLayout[name].range;
    const middle = (low + high) / 2;
    const half = ((high - low) / 2) * factor;
    return { [`${name}.range`]: [middle - half, middle + half] };
  }

  /* From a picture to a figure */

  const DRAWN = { curve: drawCurve, scatter: drawScatter, ...window.atlasKinds };
  const SHARED = {
    element,
    choice,
    spoken,
    onKeys,
    ink,
    faded,
    narrow,
    touch,
    describe,
    literal,
    ARROWS,
    LAYOUT,
    FONT,
    CONFIG,
  };
  const live = new Map(); // figure -> how to draw it again

  async function bringToLife(figure) {
    const tools = element("div", { className: "figure-tools" });
    const plot = element("div", { className: "figure-plot" });
    try {
      const asked = fetch(new URL(figure.dataset.interactive, document.baseURI));
      const [Plotly, response] = await Promise.all([loadPlotly(), asked]);
      if (!response.ok) throw new Error(`${response.status} ${response.url}`);
      const data = await response.json();
      if (!figure.isConnected || (data.kind === "curve" && !canDraw3D())) return;
      plot.classList.add(`figure-plot--${data.kind}`);
      figure.prepend(tools, plot);
      live.set(figure, await DRAWN[data.kind](Plotly, data, plot, tools, figure, SHARED));
      figure.classList.add("is-live");
    } catch (problem) {
      tools.remove();
      plot.remove();
      figure.querySelector(".figure-facts")?.remove();
      figure.classList.remove("has-facts");
      console.warn(`A picture stays a picture: ${problem.message}`);
    }
  }

  function recolour() {
    for (const [figure, draw] of live) {
      if (figure.isConnected) draw();
      else live.delete(figure);
    }
  }

  narrow.addEventListener("change", recolour); // some kinds lay themselves out anew

  const inView = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        inView.unobserve(target);
        bringToLife(target);
      }
    },
    { rootMargin: "100px" },
  );

  /* Pictures large: a dialog over the page; without this script the link opens the file. */

  function openLarge(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    const picture = event.currentTarget.querySelector("img");
    const close = element("button", { type: "button", className: "md-button", textContent: "Close" });
    const scroll = element("div", { className: "large-scroll", tabIndex: 0 }, element("img", { src: picture.src, alt: picture.alt }));
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "The picture, large");
    const dialog = element("dialog", { className: "large" }, close, scroll);
    dialog.setAttribute("aria-label", "Picture");
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (click) => click.target === dialog && dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    event.preventDefault();
  }

  let watched = null;
  function enhance() {
    document.querySelectorAll("figure[data-interactive]:not([data-watched])").forEach((figure) => {
      figure.dataset.watched = "";
      inView.observe(figure);
    });
    document.querySelectorAll("a.tone:not([data-watched])").forEach((link) => {
      link.dataset.watched = "";
      link.addEventListener("click", openLarge);
    });
    if (watched !== document.body) {
      watched = document.body;
      new MutationObserver(recolour).observe(watched, { attributeFilter: ["data-md-color-scheme"] });
    }
    recolour();
  }

  window.atlasFigures = { loadPlotly, curveLayout, makeTurnable, describe, canDraw3D, ink, faded, element, EYE, CONFIG };
  document.addEventListener("atlas:pictures", enhance); // pictures that a script has put on the page
  if (window.document$) window.document$.subscribe(enhance); // Material: again after each instant navigation
  else enhance();
})();
