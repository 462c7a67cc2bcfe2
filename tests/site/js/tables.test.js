import assert from "node:assert/strict";
import { test } from "node:test";
import { byVerdict, plain, sorted, squeezed } from "../../../site_src/assets/tables.js";

/** Return a row of cells as tables have them: numbers with all digits behind them, words as they are. */
const row = (...values) => ({
  cells: values.map((value) => ({
    dataset: typeof value === "number" ? { value: String(value) } : {},
    textContent: value === null ? "" : String(value),
    classList: { contains: () => typeof value === "number" },
  })),
});
const cell = (verdict, value) => ({ className: `cell cell--${verdict}`, dataset: { value }, textContent: "" });

test("numbers are sorted by size, words with the numbers in them, absent values last either way", () => {
  const numbers = [10, null, -2, 1e-7].map((value) => row(value));
  const order = (rows, sign) => sorted(rows, 0, sign).map(({ cells }) => cells[0].textContent);
  assert.deepEqual(order(numbers, 1), ["-2", "1e-7", "10", ""]);
  assert.deepEqual(order(numbers, -1), ["10", "1e-7", "-2", ""]);
  assert.deepEqual(order(["layer 10", "layer 9", "head"].map((name) => row(name)), 1), ["head", "layer 9", "layer 10"]);
});

test("texts are searched without case, models also without what is written differently", () => {
  assert.equal(plain("−2 İ"), "-2 i̇");
  assert.equal(squeezed("GPT-2 124M"), squeezed("gpt2 124m"));
});

test("the matrix is sorted by verdict, then by the size of the effect", () => {
  const cells = [cell("fails", "9"), cell("holds", "-3"), cell("untested"), cell("holds", "2"), cell("partly", "1")];
  assert.deepEqual([...cells].sort(byVerdict).map((one) => cells.indexOf(one)), [1, 3, 4, 0, 2]);
});
