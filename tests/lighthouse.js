/* Prints what Lighthouse CI found of each page. */

import { readFileSync, readdirSync } from "node:fs";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import config from "./lighthouse.cjs";

const FOUND = ".lighthouseci";

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** Return what Lighthouse found of one page: numbers by what the budget calls them, and what it misses, in words. */
function ofPage(page, results, { least, most }) {
  const own = results.filter(({ url }) => new URL(url).pathname === `/${page}`);
  const measured = (asked, where, actual) =>
    Object.keys(asked).flatMap((name) => {
      const found = own.find((one) => one[where] === name)?.actual;
      return typeof found === "number" ? [[name, Math.round(actual(found))]] : [];
    });
  const scores = Object.fromEntries(measured(least, "auditProperty", (score) => 100 * score));
  const times = Object.fromEntries(measured(most, "auditId", (time) => time));
  const missed = [
    ...Object.keys(least).filter((name) => !(scores[name] >= least[name])).map((name) => `${name} ${scores[name] ?? "not measured"}, at least ${least[name]}`),
    ...Object.keys(most).filter((name) => !(times[name] <= most[name])).map((name) => `${name} ${times[name] ?? "not measured"} ms, at most ${most[name]}`),
  ];
  return { page, scores, times, missed };
}

/** Return what is told of pages by kind, of Lighthouse CI's results and its reports. */
export function record(results, reports, { pages, budget }) {
  return {
    budget,
    lighthouse: reports[0].lighthouseVersion,
    looks: reports.length / Object.keys(pages).length,
    speed: Math.round(median(reports.map(({ environment }) => environment.benchmarkIndex))),
    pages: Object.fromEntries(Object.entries(pages).map(([kind, page]) => [kind, ofPage(page, results, budget)])),
  };
}

function main() {
  const read = (name) => JSON.parse(readFileSync(`${FOUND}/${name}`, "utf8"));
  const reports = readdirSync(FOUND).filter((name) => /^lhr-.*\.json$/.test(name)).map(read);
  const found = record(read("assertion-results.json"), reports, config);
  for (const [kind, { scores, times, missed }] of Object.entries(found.pages)) {
    const numbers = Object.entries({ ...scores, ...times }).map((pair) => pair.join(" "));
    console.log([`${kind}: ${numbers.join(", ")}`, ...missed.map((what) => `    missed: ${what}`)].join("\n"));
  }
  console.log(`This machine's speed while it looked: ${found.speed} (Lighthouse means its figures for 1500 and more).`);
}

if (import.meta.url === pathToFileURL(argv[1] ?? "").href) main();
