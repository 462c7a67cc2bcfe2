import assert from "node:assert/strict";
import { test } from "node:test";
import { asInTables, count, decades, inFull, ticks, written } from "../../../site_src/assets/numbers.js";

test("numbers have few digits, true minus signs, and a dash where there is none", () => {
  assert.deepEqual([0.123456, -2, 1e-7, -1e-7, 0].map((value) => written(value)), ["0.123", "−2", "1e−7", "−1e−7", "0"]);
  assert.deepEqual([null, undefined, NaN, Infinity].map((value) => written(value)), ["–", "–", "–", "–"]);
  assert.equal(written(1234.5678, 6), "1234.57");
});

test("values in full keep every digit, and words stay words", () => {
  assert.deepEqual([0.1 + 0.2, -1.5e-9, true, false, "a-b", null].map(inFull), ["0.30000000000000004", "−1.5e−9", "yes", "no", "a-b", "–"]);
});

test("tables write whole numbers in full, others in four digits, by powers of ten where they are far from 1", () => {
  assert.deepEqual([50257, -3, 0.12345, 12345.6, -0.000012345, 0, null].map(asInTables), ["50257", "−3", "0.1235", "12350", "−1.234e−5", "0", "–"]);
  assert.equal(count(50257), "50,257");
});

test("ticks are round, inside the ends, and whole where asked for", () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-0.3, 0.3, 3), [-0.2, 0, 0.2]);
  assert.deepEqual(ticks(0, 2, 8, true), [0, 1, 2]);
  assert.deepEqual(ticks(3, 3, 5), [3]);
});

test("an axis of powers has 1, 2 and 5 between few of them", () => {
  assert.deepEqual(decades(0, 1), [1, 2, 5, 10]);
  assert.deepEqual(decades(-2, 2), [0.01, 0.1, 1, 10, 100]);
});
