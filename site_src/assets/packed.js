/* Long lists in the site's data files are packed: words as {"words": text}, a space between two; numbers as
   {"packed": text, "per": k}. Each number is a whole one over
   k, 1 where it isn't said, and the text has the differences from one to the next in digits of base 64 (A is 0, / is 63),
   as source maps write them: the lowest bit is the sign, five bits a digit, the lowest first, and a digit from 32 on
   says that another follows. A dot is an absent number. generators/base/packed.py writes them. */
"use strict";

window.atlasPacked = (() => {
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const VALUES = new Map([...DIGITS].map((digit, value) => [digit, value]));

  function numbers({ packed, per = 1 }) {
    const found = [];
    let [value, rest, scale] = [0, 0, 1];
    for (const letter of packed) {
      const digit = VALUES.get(letter);
      if (digit === undefined) {
        found.push(null);
        continue;
      }
      rest += (digit % 32) * scale; // no shift: bits of a shift are 32
      scale *= 32;
      if (digit >= 32) continue;
      value += (rest % 2 ? -1 : 1) * Math.floor(rest / 2);
      found.push(value / per);
      [rest, scale] = [0, 1];
    }
    return found;
  }

  /** Return what was packed, as it was. */
  function unpacked(value) {
    if (Array.isArray(value)) return value.map(unpacked);
    if (value === null || typeof value !== "object") return value;
    if (typeof value.packed === "string") return numbers(value);
    if (typeof value.words === "string") return value.words.split(" ");
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpacked(item)]));
  }

  return unpacked;
})();
