import assert from "node:assert/strict";
import { test } from "node:test";
import { isNamed } from "../../../site_src/assets/matrix.js";
import { plain, squeezed } from "../../../site_src/assets/tables.js";

test("texts are searched without case, models also without what is written differently", () => {
  assert.equal(plain("−2 İ"), "-2 i̇");
  assert.equal(squeezed("GPT-2 124M"), squeezed("gpt2 124m"));
});

test("a model is found however its name is written", () => {
  for (const typed of ["gpt2", "GPT-2 124m", "gpt 2 124", ""]) assert.ok(isNamed("GPT-2 124M", typed), typed);
  assert.ok(!isNamed("GPT-1", "gpt2"));
});
