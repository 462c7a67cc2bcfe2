import assert from "node:assert/strict";
import { test } from "node:test";
import { askedAs, indexOf, nameOf, placeOf, rankOf, readable, titleOf, valueOf } from "../../../site_src/assets/entity-data.js";
import { inShort } from "../../../site_src/assets/in-short.js";

const MODEL = { name: "gpt2", title: "GPT-2", n_layer: 12, n_head: 12 };
const TOKENS = { count: 50257, names: ["␠the", "\\\\", "it's"], ids: [262, 59, 3] };

test("heads are named either way, and only those there are", () => {
  assert.deepEqual(["0.7", "L0H7", "l11h11", " 1,0 "].map((asked) => indexOf("head", asked, {}, MODEL)), [7, 7, 143, 12]);
  assert.throws(() => indexOf("head", "12.0", {}, MODEL), /GPT-2 has no head L12H0: its heads are L0H0 to L11H11/);
  assert.throws(() => indexOf("head", "7", {}, MODEL), /“7” names no head/);
  assert.deepEqual([titleOf("head", 143, MODEL), askedAs("head", 143, MODEL)], ["Head L11H11", "11.11"]);
});

test("tokens are found by id, by name, and by text in quotes or without", () => {
  const found = ["262", "␠the", " the", "' the'", '" the"', "\\", "it's"].map((asked) => indexOf("token", asked, TOKENS, MODEL));
  assert.deepEqual(found, [262, 262, 262, 262, 262, 59, 3]);
  assert.throws(() => indexOf("token", "nowhere", TOKENS, MODEL), RangeError);
  assert.equal(readable("a\n\\"), "a␊\\\\");
  assert.deepEqual([nameOf(TOKENS, 262), nameOf(TOKENS, 1)], ["␠the", null]);
});

test("numbers outside are told with the last there is", () => {
  assert.equal(indexOf("channel", "767", { count: 768 }, MODEL), 767);
  assert.throws(() => indexOf("channel", "768", { count: 768 }, MODEL), /no channel 768: GPT-2 has channels 0 to 767/);
  assert.throws(() => indexOf("position", "-1", { count: 1024 }, MODEL), /“-1” is no position/);
});

test("ranks count from the largest, or from the strongest whichever its sign; equal values share one", () => {
  const values = [1, -3, 2, 2, null];
  assert.deepEqual([2, -3].map((value) => rankOf({ order: "largest", values }, value)), ["1 of 4", "4 of 4"]);
  assert.deepEqual([2, -3].map((value) => rankOf({ order: "strongest", values }, value)), ["2 of 4", "1 of 4"]);
  assert.equal(placeOf({ values }, 2), null, "a column without order");
  assert.equal(rankOf({ order: "largest", values }, null), "");
});

test("a column has values of all, or of those that it lists", () => {
  const entities = { id_lists: [[5, 9]] };
  assert.deepEqual([valueOf({ values: [1, 2] }, entities, 1), valueOf({ values: [1, 2], ids: 0 }, entities, 9)], [2, 2]);
  assert.equal(valueOf({ values: [1, 2], ids: 0 }, entities, 7), undefined);
});

test("a channel in short is told by rank and by what it costs", () => {
  const columns = [
    { name: "position_std", order: "largest", values: [...Array(40).keys()] },
    { name: "cost", order: "largest", says: "cost (bits a token)", values: [0.5, 0.1, 0.1, ...Array(37).fill(0.1)] },
  ];
  const entities = { columns, lines: [{ name: "ln2", at: [0, 1], values: [[2, 8], [1, 1]], usual: [1, 2] }], id_lists: [] };
  assert.equal(
    inShort(entities, 0),
    "ln2 gives it the largest gain in 2 of 2 layers, 3 times the median channel's. It hardly varies with position (rank 40 of 40). " +
      "Fixing it at its mean costs 0.5 bits a token, 5 times the median of the channels tested, the most of 40.",
  );
  assert.equal(inShort({ columns: [], lines: [] }, 0), "");
});
