/* Numbers and verdicts as pages write them, and round numbers for axes. */

/** @typedef {"holds" | "partly" | "fails" | "untested"} Verdict */

/** @type {Record<Verdict, string>} */
export const SYMBOLS = { holds: "✓", partly: "◐", fails: "✗", untested: "–" };

/** @param {unknown} value @returns {value is number} */
export const isNumber = (value) => typeof value === "number";

/** Return a number in a few significant digits with true minus signs, a dash for an absent one.
 * @param {number | null | undefined} value
 */
export function written(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return String(Number(value.toPrecision(digits))).replaceAll("-", "−");
}

/** Return a value with all its digits; yes or no; words as they are.
 * @param {number | boolean | string | null | undefined} value
 */
export function inFull(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : written(value, 17);
}

/** Return a number as the pages' tables write it: whole ones in full, others in four significant digits.
 * @param {number | null | undefined} value
 */
export function asInTables(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) || (size >= 1e-4 && size < 1e7)) return written(value, Number.isInteger(value) ? 17 : 4);
  return value.toExponential(3).replaceAll("-", "−");
}

/** Return of what a value in this unit is a part, which is written in percent; null where it is none.
 * @param {string} unit
 */
export function partOf(unit) {
  const found = /^(?:share )?of (.+)$|^share$/.exec(unit);
  return found && (found[1] ? `of ${found[1]}` : "");
}

/** @param {number} value */
export const count = (value) => value.toLocaleString("en");

/** Return round numbers between two ends, about as many as asked for; `whole` for what has no halves.
 * @param {number} low
 * @param {number} high
 * @param {number} about
 */
export function ticks(low, high, about, whole = false) {
  if (!(high > low)) return [low];
  const rough = (high - low) / Math.max(1, about);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10) * power;
  if (whole) step = Math.max(1, Math.round(step));
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let i = first; i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** Return 1, 2, 5 times the powers of ten between two powers; of many powers, only these.
 * @param {number} from
 * @param {number} to
 */
export function decades(from, to) {
  const found = [];
  for (let power = Math.floor(from); power <= to; power++) {
    for (const factor of to - from > 3 ? [1] : [1, 2, 5]) {
      const at = power + Math.log10(factor);
      if (at >= from && at <= to) found.push(Number((factor * 10 ** power).toPrecision(3)));
    }
  }
  return found;
}
