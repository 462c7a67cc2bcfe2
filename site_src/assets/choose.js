/* On a finding's page: any model's figure in the place of the first one's, with what the atlas says of that model. The
   address names the model. Without this script the first model's figure stays, and all stand small below. */

import { all, element, find, json, onEveryPage, part, root, verdict } from "./dom.js";

const PARAMETER = "model";

/** Return the figure of a model, made from its small one: its pictures, its numbers, and its caption under `title`: what it
    shows, then how to read it, the `usual` way unless it has its own. */
function figureOf(small, title, id, usual) {
  const figure = element("figure", { className: "atlas-figure", id });
  if (small.dataset.cite) figure.dataset.cite = small.dataset.cite;
  if (small.dataset.live) figure.dataset.interactive = small.dataset.live;
  for (const link of all("a.tone", small)) {
    const copy = /** @type {HTMLElement} */ (link.cloneNode(true));
    delete copy.dataset.watched;
    part("img", HTMLImageElement, copy).loading = "eager";
    figure.append(copy);
  }
  figure.append(element("figcaption", {}, title.cloneNode(true), ` ${small.dataset.shows} ${small.dataset.caption ?? usual}`));
  return figure;
}

/** Return what the claims about a finding say of a model. */
async function claimsOf(name, finding) {
  const { claims } = await json(new URL(`api/v1/models/${name}.json`, root()));
  return claims
    .filter((claim) => claim.finding === finding)
    .map((claim) => element("li", {}, verdict(claim.verdict), `${claim.close ? " ≈" : ""} ${claim.answer}`));
}

/**
 * @param {HTMLElement} place
 * @param {HTMLElement} small
 */
async function show(place, small) {
  const name = small.dataset.model ?? "";
  place.dataset.model = name;
  place.querySelector("ul.short")?.replaceChildren();
  const before = part("figure", HTMLElement, place);
  before.replaceWith(figureOf(small, before.querySelector("figcaption strong"), before.id, place.dataset.caption));
  const link = part(".chosen-model a", HTMLAnchorElement, place);
  link.textContent = small.dataset.title ?? "";
  link.href = part("figcaption a", HTMLAnchorElement, small).href;
  document.dispatchEvent(new Event("atlas:pictures"));
  const claims = await claimsOf(name, place.dataset.finding);
  if (place.dataset.model !== name) return; // another was chosen meanwhile
  place.querySelector("ul.short")?.replaceChildren(...claims);
}

function enhance() {
  const place = find(".chosen:not([data-ready])", HTMLElement);
  if (!place) return;
  place.dataset.ready = "";
  const models = all(".multiples figure[data-model]");
  if (models.length < 2) return;
  const select = element("select");
  for (const small of models) select.append(new Option(small.dataset.title, small.dataset.model));
  select.value = place.dataset.model ?? "";
  const choose = () => show(place, models[select.selectedIndex]);
  select.addEventListener("change", () => {
    const url = new URL(location.href);
    url.searchParams.set(PARAMETER, select.value);
    history.replaceState(history.state, "", url);
    choose();
  });
  place.prepend(element("label", {}, "Shown for ", select));
  const asked = new URL(location.href).searchParams.get(PARAMETER);
  if (asked && asked !== select.value && models.some((small) => small.dataset.model === asked)) {
    select.value = asked;
    choose();
  }
}

/** Let the reader choose whose figure is large. */
export const startChoosing = () => onEveryPage(enhance);
