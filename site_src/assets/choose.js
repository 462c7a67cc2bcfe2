/* On a finding's page: any model's figure in the place of the first one's, with what the atlas says of that model. The
   address names the model. Without this script the first model's figure stays, and all stand small below. */
"use strict";

(() => {
  const PARAMETER = "model";

  /** Return the figure of a model, made from its small one: its pictures, its numbers, its caption under `title`: the `usual` one
      unless it has its own. */
  function figureOf(small, title, id, usual) {
    const figure = document.createElement("figure");
    figure.className = "atlas-figure";
    figure.id = id;
    if (small.dataset.cite) figure.dataset.cite = small.dataset.cite;
    if (small.dataset.live) figure.dataset.interactive = small.dataset.live;
    for (const link of small.querySelectorAll("a.tone")) {
      const copy = link.cloneNode(true);
      delete copy.dataset.watched;
      copy.querySelector("img").loading = "eager";
      figure.append(copy);
    }
    const caption = document.createElement("figcaption");
    caption.append(title.cloneNode(true), ` ${small.dataset.caption ?? usual}`);
    figure.append(caption);
    return figure;
  }

  /** Return what the atlas says of a model: from this page, or, where there are many, from the page of all of them. */
  async function claimsOf(name) {
    const selector = `[data-claims-of="${CSS.escape(name)}"]`;
    const elsewhere = document.querySelector("a[data-in-words]");
    if (!elsewhere) return document.querySelector(selector);
    const response = await fetch(elsewhere.href);
    return response.ok ? new DOMParser().parseFromString(await response.text(), "text/html").querySelector(selector) : null;
  }

  async function show(place, small) {
    const name = small.dataset.model;
    place.dataset.model = name;
    place.querySelector("ul.short")?.remove();
    const before = place.querySelector("figure");
    before.replaceWith(figureOf(small, before.querySelector("figcaption strong"), before.id, place.dataset.caption));
    const link = place.querySelector(".chosen-model a");
    link.textContent = small.dataset.title;
    link.href = small.querySelector("figcaption a").href;
    document.dispatchEvent(new Event("atlas:pictures"));
    const claims = await claimsOf(name);
    if (!claims || place.dataset.model !== name) return; // another was chosen meanwhile
    const copy = claims.cloneNode(true);
    delete copy.dataset.claimsOf;
    place.querySelector("ul.short")?.remove();
    place.querySelector(".chosen-model").after(copy);
  }

  function enhance() {
    const place = document.querySelector(".chosen:not([data-ready])");
    if (!place) return;
    place.dataset.ready = "";
    const models = [...document.querySelectorAll(".multiples figure[data-model]")];
    if (models.length < 2) return;
    const select = document.createElement("select");
    for (const small of models) select.append(new Option(small.dataset.title, small.dataset.model));
    select.value = place.dataset.model;
    const choose = () => show(place, models[select.selectedIndex]);
    select.addEventListener("change", () => {
      const url = new URL(location);
      url.searchParams.set(PARAMETER, select.value);
      history.replaceState(history.state, "", url);
      choose();
    });
    const label = document.createElement("label");
    label.append("Shown for ", select);
    place.prepend(label);
    const asked = new URL(location).searchParams.get(PARAMETER);
    if (asked && asked !== select.value && models.some((small) => small.dataset.model === asked)) {
      select.value = asked;
      choose();
    }
  }

  if (window.document$) window.document$.subscribe(() => setTimeout(enhance)); // the theme has the page
  else enhance();
})();
