import assert from "node:assert/strict";
import { test } from "node:test";
import { box, scaled, view } from "../../../site_src/assets/curve.js";
import { along, nearestOf } from "../../../site_src/assets/drawing.js";
import { asCsv, read, spelled } from "../../../site_src/assets/figure-menu.js";

const CURVE = { points: [[-1, 1, 1, -1], [-2, -2, 2, 2], [0, 1, 2, 3]] }; // columns of x, y and z
const SIDES = box([CURVE]);

test("the box around curves has their middle and half their size", () => {
  assert.deepEqual(SIDES, [{ middle: 0, half: 1 }, { middle: 0, half: 2 }, { middle: 1.5, half: 1.5 }]);
  assert.equal(box([{ points: [[3], [3], [3]] }])[0].half, 1, "a point has some size, too");
});

test("a curve fits its place however it is turned, and what is near is large", () => {
  for (const turn of [0, 0.7, 2, 4]) {
    const seen = view([CURVE], SIDES, { turn, tilt: 0.4, zoom: 1 }, 400, 300);
    const [xs, ys, zs] = CURVE.points;
    for (const i of xs.keys()) {
      const [x, y] = seen(xs[i], ys[i], zs[i]);
      assert.ok(x > 0 && x < 400 && y > 0 && y < 300, `${turn}: ${x}, ${y}`);
    }
    const [near, far] = [1, -1].map((side) => seen(side * Math.cos(turn), side * Math.sin(turn), 1.5));
    assert.ok(near[2] > far[2] && near[3] > 1 && far[3] < 1);
  }
});

test("seen from the front, z goes up and y to the right", () => {
  const seen = view([CURVE], SIDES, { turn: 0, tilt: 0, zoom: 1 }, 400, 300);
  assert.ok(seen(0, 1, 1.5)[0] > seen(0, -1, 1.5)[0]);
  assert.ok(seen(0, 0, 3)[1] < seen(0, 0, 0)[1]);
  assert.ok(Math.abs(seen(0, 0, 1.5)[0] - 200) < 1e-9);
});

test("curves of two models are brought to one size about their means", () => {
  const columns = scaled(CURVE.points);
  const energy = columns.flat().reduce((sum, value) => sum + value * value, 0) / 4;
  assert.ok(Math.abs(energy - 1) < 1e-12);
  for (const column of columns) assert.ok(Math.abs(column.reduce((a, b) => a + b)) < 1e-12);
});

test("colours lie between their stops, also beyond the ends", () => {
  assert.deepEqual([-1, 0, 0.25, 0.5, 2].map((share) => along(["#000000", "#ff0000", "#ff00ff"], share)), [
    "#000000", "#000000", "#800000", "#ff0000", "#ff00ff",
  ]);
});

test("the nearest point within reach is found", () => {
  const places = [[0, 0], [10, 0], [12, 1]];
  assert.equal(nearestOf(3, (i) => places[i], 11.5, 0, 5), 2);
  assert.equal(nearestOf(3, (i) => places[i], 5, 9, 5), -1);
});

test("a view comes back out of an address, odd signs too", () => {
  const state = { turn: 45, find: "a b:c+ü%" };
  assert.deepEqual(read(spelled(state)), { turn: "45", find: "a b:c+ü%" });
  assert.deepEqual(read("find:% x"), { find: "%" }, "what is spelled wrongly stays as it is");
});

test("CSV quotes what its format needs", () => {
  assert.equal(asCsv([["a", 'b"c', "d,e", null, 0]]), 'a,"b""c","d,e",,0\r\n');
});
