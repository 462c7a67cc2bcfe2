import assert from "node:assert/strict";
import { test } from "node:test";
import { blurred, half, kernel, looks, unpacked } from "../../../site_src/assets/try-it.js";

test("numbers of half precision are read, little end first", () => {
  assert.deepEqual([0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x3555].map(half), [1, -2, 65504, 2 ** -24, Infinity, 0.333251953125]);
  assert.deepEqual([...unpacked(Buffer.from([0x00, 0x3c, 0x00, 0xc0]).toString("base64"))], [1, -2]);
});

test("positions are averaged in groups, the last of which may be smaller", () => {
  assert.deepEqual(blurred([[99], [0], [2], [4], [8], [5]], 2), [[99], [1], [1], [6], [6], [5]]);
  assert.deepEqual(blurred([[1, 2], [3, 4]], 5), [[1, 2], [3, 4]]);
});

test("attention is a softmax over what a query may see", () => {
  const z = [[0], [1], [2]];
  const weights = looks(z, [1], 2, true);
  const shares = [0, 2, 4].map(Math.exp);
  const total = shares.reduce((a, b) => a + b);
  weights.forEach((weight, i) => assert.ok(Math.abs(weight - shares[i] / total) < 1e-12));
  assert.equal(looks(z, [1], 1, true).length, 2, "a causal query sees nothing ahead");
  assert.equal(looks(z, [1], 1, false).length, 3);
});

test("the mean kernel of a head that sees all alike is 1 / (how many it sees)", () => {
  const z = Array.from({ length: 3 }, () => [0]);
  assert.deepEqual(kernel(z, [1], true, [0, 1, 3]), [(1 / 2 + 1 / 3) / 2, (1 / 2 + 1 / 3) / 2, null]);
});
