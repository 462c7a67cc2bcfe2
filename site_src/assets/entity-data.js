/* Which channel, head, token or position an address asks for, and what stored data say of it. */

import { count, isNumber } from "./numbers.js";

export const KINDS = ["channel", "head", "token", "position"];

/** Return a text as token names are spelled: what can't be seen as control pictures, a backslash doubled. */
export const readable = (text) =>
  [...text].map((c) => (c <= " " ? String.fromCodePoint(0x2400 + c.codePointAt(0)) : c === "\\" ? "\\\\" : c)).join("");

/** Return a text without the quotes around it, null where there are none. */
const unquoted = (text) => /^(['"])([^]*)\1$/.exec(text)?.[2] ?? null;

function outside(entities, kind, model) {
  const last = count(entities.count - 1);
  return `${model.title} has ${kind}s 0 to ${last}.`;
}

function indexOfHead(asked, model) {
  const [, layer, head] = /^L?(\d+)[.,H](\d+)$/i.exec(asked.trim()) ?? [];
  const [layers, heads] = [model.n_layer, model.n_head];
  if (!heads) throw new RangeError(`Nothing is known of heads of ${model.title}.`);
  if (layer === undefined) throw new RangeError(`“${asked}” names no head: heads are named by layer and head, as 0.7 or L0H7.`);
  if (layer >= layers || head >= heads)
    throw new RangeError(`${model.title} has no head L${layer}H${head}: its heads are L0H0 to L${layers - 1}H${heads - 1}.`);
  return Number(layer) * heads + Number(head);
}

function indexOfToken(asked, entities, model) {
  const text = unquoted(asked) ?? asked;
  const spelled = [text, readable(text)].map((name) => entities.names?.indexOf(name) ?? -1).find((at) => at >= 0);
  if (spelled !== undefined) return entities.ids[spelled];
  throw new RangeError(
    `No token of ${model.title} whose name is stored here is spelled “${readable(text)}”. ` +
      (entities.names ? `The names of ${count(entities.names.length)} tokens are stored; any other can be asked for by its id.` : "None of its tokens' names are known here; ask by an id."),
  );
}

/** Return the index of an entity that is asked for. Throws RangeError, with a sentence, where there is none. */
export function indexOf(kind, asked, entities, model) {
  if (kind === "head") return indexOfHead(asked, model);
  const text = asked.trim();
  if (!/^\d+$/.test(text)) {
    if (kind === "token") return indexOfToken(asked, entities, model);
    throw new RangeError(`“${asked}” is no ${kind}: it takes a number. ${entities.count ? outside(entities, kind, model) : ""}`);
  }
  const index = Number(text);
  if (entities.count && index >= entities.count) throw new RangeError(`There is no ${kind} ${text}: ${outside(entities, kind, model)}`);
  return index;
}

export const nameOf = (entities, index) => entities.names?.[entities.ids.indexOf(index)] ?? null;

/** Return a column's value for an entity, undefined where it has none. */
export function valueOf(column, entities, index) {
  const at = column.ids === undefined ? index : entities.id_lists[column.ids].indexOf(index);
  return column.values[at];
}

/** Return which place a value has among those of its column, and of how many; null where they have no order. */
export function placeOf(column, value) {
  if (!column.order || !isNumber(value)) return null;
  const size = column.order === "strongest" ? Math.abs : (x) => x;
  const all = column.values.filter(isNumber);
  const rank = 1 + all.filter((other) => size(other) > size(value)).length;
  return { rank, of: all.length, says: () => `${count(rank)} of ${count(all.length)}` };
}
export const rankOf = (column, value) => placeOf(column, value)?.says() ?? "";

export const titleOf = (kind, index, model) =>
  kind === "head" ? `Head L${Math.floor(index / model.n_head)}H${index % model.n_head}` : `${kind[0].toUpperCase()}${kind.slice(1)} ${index}`;

/** Return how an entity is asked for in an address. */
export const askedAs = (kind, index, model) => (kind === "head" ? `${Math.floor(index / model.n_head)}.${index % model.n_head}` : String(index));
