/* What Lighthouse must find on one page of every kind, for Lighthouse CI (`make lighthouse`). It serves the built site
   compressed, as a host of pages does, and looks with Lighthouse's default throttling: a slow phone on a slow network,
   simulated. Each page is looked at several times and the median counts: what else the machine does meanwhile moves
   single looks. */

const budget = {
  least: { performance: 95, accessibility: 95, "best-practices": 95, seo: 95 }, // of 100
  most: { "total-blocking-time": 150 }, // milliseconds in which the page can't answer, on Lighthouse's slow phone
};
const pages = {
  home: "",
  models: "models/",
  model: "models/gpt2/",
  question: "questions/shape/",
  questions: "questions/",
  compare: "compare/",
  about: "about/",
  methods: "methods/",
  data: "data/",
  glossary: "glossary/",
  notebook: "notebooks/helix-by-hand/",
};

const scores = Object.entries(budget.least).map(([name, least]) => [`categories:${name}`, ["error", { minScore: least / 100 }]]);
const times = Object.entries(budget.most).map(([name, most]) => [name, ["error", { maxNumericValue: most }]]);

module.exports = {
  budget,
  pages,
  ci: {
    collect: {
      staticDistDir: "site",
      url: Object.values(pages).map((page) => `http://localhost/${page}`),
      numberOfRuns: 3,
      settings: { chromeFlags: "--headless=new --no-sandbox --disable-background-networking --disable-component-update" },
    },
    assert: {
      aggregationMethod: "median",
      includePassedAssertions: true,
      assertions: Object.fromEntries([...scores, ...times]),
    },
  },
};
