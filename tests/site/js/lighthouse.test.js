import assert from "node:assert/strict";
import { test } from "node:test";
import config from "../../lighthouse.cjs";
import { record } from "../../lighthouse.js";

const BUDGET = { least: { performance: 95, seo: 95 }, most: { "total-blocking-time": 150 } };
const REPORTS = [1500, 900, 2000, 1600].map((benchmarkIndex) => ({ lighthouseVersion: "12.0.0", environment: { benchmarkIndex } }));

/** Return what Lighthouse CI says of one page. */
const results = (page, performance, time) => [
  { auditId: "categories", auditProperty: "performance", actual: performance, url: `http://localhost:8000/${page}` },
  { auditId: "total-blocking-time", actual: time, url: `http://localhost:8000/${page}` },
];
const seo = { auditId: "categories", auditProperty: "seo", actual: 1, url: "http://localhost:8000/" };

test("what is found is told by kind of page, with what misses the budget or was not measured", () => {
  const found = record([...results("", 0.951, 150), seo, ...results("below/", 0.94, 151.2)], REPORTS, {
    pages: { home: "", below: "below/" },
    budget: BUDGET,
  });
  assert.deepEqual(found.pages.home, { page: "", scores: { performance: 95, seo: 100 }, times: { "total-blocking-time": 150 }, missed: [] });
  assert.deepEqual(found.pages.below.missed, [
    "performance 94, at least 95",
    "seo not measured, at least 95",
    "total-blocking-time 151 ms, at most 150",
  ]);
  assert.deepEqual([found.lighthouse, found.looks, found.speed], ["12.0.0", 2, 1600]);
});

test("the budget asks for much, on pages of every kind, and Lighthouse CI holds pages to it", () => {
  const { least, most } = config.budget;
  assert.deepEqual(Object.keys(least), ["performance", "accessibility", "best-practices", "seo"]);
  assert.ok(Math.min(...Object.values(least)) >= 95 && most["total-blocking-time"] <= 150);
  for (const kind of ["home", "model", "question", "compare", "about", "glossary", "notebook"]) assert.ok(kind in config.pages);
  const { collect, assert: asked } = config.ci;
  assert.equal(collect.url.length, Object.keys(config.pages).length);
  assert.deepEqual(asked.assertions["categories:seo"], ["error", { minScore: 0.95 }]);
  assert.deepEqual(asked.assertions["total-blocking-time"], ["error", { maxNumericValue: 150 }]);
});
