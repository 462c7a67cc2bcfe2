"""Compare what the project weighs with .ci/budgets.toml: lines by folder and, with `--site`, the built site."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
MAIN = re.compile(r"<article.*?</article>", re.DOTALL)
UNSEEN = re.compile(r"<(script|style|svg|math)\b.*?</\1>|<[^>]+>", re.DOTALL)


def lines(pattern: str) -> int:
    """Return the lines of all files of a pattern that git tracks."""
    named = subprocess.run(
        ["git", "ls-files", "-z", f":(glob){pattern}"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return sum((ROOT / name).read_bytes().count(b"\n") for name in named.stdout.split("\0") if name)


def site() -> dict[str, float]:
    """Return what the built site weighs: pages are those with an article, words those in it."""
    texts = (page.read_text("utf-8") for page in SITE.rglob("*.html") if page.name != "404.html")
    articles = [found[0] for text in texts if (found := MAIN.search(text))]
    return {
        "pages": len(articles),
        "words": sum(len(UNSEEN.sub(" ", article).split()) for article in articles),
        "figures": sum(article.count("<figure") for article in articles),
        "megabytes": sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file()) / 1e6,
    }


def weighed(budgets: dict[str, dict[str, int]], *, with_site: bool) -> Iterator[tuple[str, float, int]]:
    """Yield what is weighed, what it weighs, and what it may."""
    yield from ((f"lines of {pattern}", lines(pattern), most) for pattern, most in budgets["lines"].items())
    if with_site:
        found = site()
        yield from ((f"{name} of the site", found[name], most) for name, most in budgets["site"].items())


def main() -> None:
    """Print a line for everything, and end with 1 if anything is above its budget."""
    budgets = tomllib.loads((ROOT / ".ci" / "budgets.toml").read_text("utf-8"))
    found = list(weighed(budgets, with_site="--site" in sys.argv))
    for name, weight, most in found:
        print(f"{name}: {weight:,.0f} of {most:,}{'' if weight <= most else '  <- above its budget'}")
    sys.exit(any(weight > most for _, weight, most in found))


if __name__ == "__main__":
    main()
