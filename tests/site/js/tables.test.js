import assert from "node:assert/strict";
import { test } from "node:test";
import { isNamed } from "../../../site_src/assets/matrix.js";
import { plain, sorted, squeezed } from "../../../site_src/assets/tables.js";

/** Return a row of cells as tables have them: numbers with all digits behind them, words as they are. */
const row = (...values) => ({
  cells: values.map((value) => ({
    dataset: typeof value === "number" ? { value: String(value) } : {},
    textContent: value === null ? "" : String(value),
    classList: { contains: () => typeof value === "number" },
  })),
});

test("numbers are sorted by size, words with the numbers in them, absent values last either way", () => {
  const numbers = [10, null, -2, 1e-7].map((value) => row(value));
  const order = (rows, sign) => sorted(rows, 0, sign).map(({ cells }) => cells[0].textContent);
  assert.deepEqual(order(numbers, 1), ["-2", "1e-7", "10", ""]);
  assert.deepEqual(order(numbers, -1), ["10", "1e-7", "-2", ""]);
  assert.deepEqual(order(["layer 10", "layer 9", "head"].map((name) => row(name)), 1), ["head", "layer 9", "layer 10"]);
  assert.deepEqual(order(["b", 10, "a", 9].map((mixed) => row(mixed)), 1), ["9", "10", "a", "b"]);
});

test("texts are searched without case, models also without what is written differently", () => {
  assert.equal(plain("−2 İ"), "-2 i̇");
  assert.equal(squeezed("GPT-2 124M"), squeezed("gpt2 124m"));
});

test("a model is found however its name is written", () => {
  for (const typed of ["gpt2", "GPT-2 124m", "gpt 2 124", ""]) assert.ok(isNamed("GPT-2 124M", typed), typed);
  assert.ok(!isNamed("GPT-1", "gpt2"));
});
