/* What a channel is, in a few sentences made from its numbers: the panel on it opens with them (entities.js). */

import { placeOf, valueOf } from "./entity-data.js";
import { isNumber, written } from "./numbers.js";

/** Return these sentences, none where nothing is known. */
export function inShort(entities, index) {
  const MUCH = 0.05; // of all channels, from the largest on
  const HARDLY = 0.5;
  const short = (value) => written(Number(value.toPrecision(2)));
  const middle = (values) => {
    const sorted = values.filter(isNumber).sort((a, b) => a - b);
    return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  };

  /** Return a column by its name, with this channel's value and place there; null where it has none. */
  function known(name) {
    const column = entities.columns.find((one) => one.name === name);
    const value = column && valueOf(column, entities, index);
    const place = isNumber(value) ? placeOf(column, value) : null;
    return place ? { column, value, place } : null;
  }

  function gains() {
    const line = entities.lines.find(({ name }) => name === "ln2");
    if (!line) return "";
    const own = line.values[index];
    const top = line.at.filter((_, i) => line.values.every((other) => other[i] <= own[i])).length;
    const layers = `${line.at.length} ${line.at.length === 1 ? "layer" : "layers"}`;
    const times = `${short(middle(own.map((gain, i) => gain / line.usual[i]).filter(Number.isFinite)))} times the median channel's`;
    return top ? `ln2 gives it the largest gain in ${top} of ${layers}, ${times}.` : `ln2's gain on it is ${times}, in no layer the largest.`;
  }

  function varies() {
    const parts = [["position_std", "position"], ["token_std", "the token"]].flatMap(([name, what]) => { // prettier-ignore
      const found = known(name);
      if (!found) return [];
      const { rank, of } = found.place;
      const how = rank <= MUCH * of ? "much" : rank > HARDLY * of ? "hardly" : "as many do";
      return [{ how, says: `${what} (rank ${found.place.says()})` }];
    });
    if (!parts.length) return "";
    const verb = { much: "varies much with", hardly: "hardly varies with", "as many do": "varies, as many do, with" };
    const [first, second] = parts;
    if (!second) return `It ${verb[first.how]} ${first.says}.`;
    if (first.how === second.how) return `It ${verb[first.how]} ${first.says} ${first.how === "hardly" ? "or" : "and"} ${second.says}.`;
    return `It ${verb[first.how]} ${first.says}, and ${verb[second.how]} ${second.says}.`;
  }

  function cost() {
    const found = known("cost");
    if (!found) return "";
    const [typical, { rank, of }] = [middle(found.column.values), found.place];
    const times = typical > 0 ? `, ${short(found.value / typical)} times the median of the channels tested` : "";
    const unit = found.column.says.match(/\(([^)]*)\)$/)?.[1] ?? "";
    const cost = `${short(found.value)} ${unit.startsWith("1 - ") ? "in cosine with the unchanged states" : unit}`;
    return `Fixing it at its mean costs ${cost}${times}${rank === 1 ? `, the most of ${of}` : ` (rank ${found.place.says()})`}.`;
  }

  function frequency() {
    const [weights, there, next] = ["rho_frequency", "token_there", "next_token"].map(known);
    const inWeights = weights && `Over tokens, its value in the embedding and their frequency have a rank correlation of ${short(weights.value)} (rank ${weights.place.says()})`;
    const running = [{ found: there, which: "the current token" }, { found: next, which: "the next token" }] // prettier-ignore
      .flatMap(({ found, which }) => (found ? [`${short(found.value)} with the frequency of ${which}`] : []));
    const inUse = running.length ? `on text, the strongest correlations of its values, over layers, are ${running.join(" and ")}` : "";
    const both = [inWeights, inUse].filter(Boolean).join("; ");
    return both && `${both[0].toUpperCase()}${both.slice(1)}.`;
  }

  return [gains(), varies(), cost(), frequency()].filter(Boolean).join(" ");
}
