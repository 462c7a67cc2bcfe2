"""Figures drawn, or taken from the cache if the same code has drawn the same measurements before."""

import gc
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from generators.base.packed import packed
from generators.base.plain import as_compact_json
from generators.compute import code
from generators.compute.judged import JudgedFinding
from generators.drawing import svg
from generators.drawing.head_grid import HeadGrid
from generators.findings.contract import Figure
from generators.findings.judging import NotMeasuredError
from generators.site.staging import Staging
from generators.site.words import Caption, caption

SIZE = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True)
class Picture:
    """A drawn figure: its addresses on light and dark pages (from the site's root), its size, the words about it.

    `data` is what its interactive form is made from, if it has one.
    """

    name: str
    title: str
    words: Caption
    light: str
    dark: str
    width: int
    height: int
    data: str | None = None


class Drawing(NamedTuple):
    """Where a drawn figure is on light and on dark pages, from the site's root, and its size in CSS pixels."""

    light: str
    dark: str
    width: int
    height: int


def interactive_figures(findings: Iterable[JudgedFinding]) -> dict[str, Any]:
    """Return what the interactive figures of one model are made from, by name.

    One of heads takes in the lines of the other that it names: findings know nothing of each other's results.
    """
    measured = [(judged.finding, judged.measured) for judged in findings if judged.measured is not None]
    made = {}
    for finding, found in measured:
        with suppress(NotMeasuredError):
            for figure in finding.figures(found):
                with suppress(NotMeasuredError):
                    if figure.interactive is not None:
                        made[figure.name] = figure.interactive()
    return {name: _beside(drawn, made) for name, drawn in made.items()}


def _beside(drawn: Any, made: Mapping[str, Any]) -> Any:
    if isinstance(drawn, HeadGrid) and drawn.beside is not None:
        return drawn.joined(made.get(drawn.beside))
    return drawn


def pictures(judged: JudgedFinding, interactive: Mapping[str, Any], model: str, staging: Staging) -> list[Picture]:
    """Draw every figure of one finding of one model, but those that need numbers which were not measured yet.

    `interactive` is what the interactive ones are made from.
    """
    made: list[Picture] = []
    if judged.measured is None:
        return made
    with suppress(NotMeasuredError):
        for figure in judged.finding.figures(judged.measured):
            with suppress(NotMeasuredError):
                made.append(_picture(judged, figure, interactive.get(figure.name), model, staging))
    return made


def _picture(judged: JudgedFinding, figure: Figure, interactive: Any, model: str, staging: Staging) -> Picture:
    files = drawn(f"figures/{model}/{figure.name}", _drawing_key(judged, figure), figure.draw, staging)
    data = None
    if interactive is not None:
        data = f"data/{model}/{figure.name}.json"
        staging.write(data, as_compact_json(packed(interactive.as_json())))
    assert judged.measured is not None
    words = caption(judged.finding.name, figure.name, judged.measured)
    return Picture(figure.name, figure.title, words, *files, data)


def drawn(path: str, key: str, draw: Callable[[], Any], staging: Staging) -> Drawing:
    """Write a figure; return where it is, and its size.

    `path` has no ending. It is drawn only if the cache has nothing that was drawn under this key.
    """
    name, data = f"{path}.svg", _svg(key, draw, staging)
    staging.write(name, data)
    return Drawing(name, f"{name}#{svg.DARK}", *_size(data))


def _svg(key: str, draw: Callable[[], Any], staging: Staging) -> bytes:
    name = f"{hashlib.sha256(f'{key} {code.digest(svg.__name__)}'.encode()).hexdigest()[:32]}.svg"
    known = staging.kept(name)
    if known is not None:
        return known
    with _nothing_collected():
        made = svg.svg(draw())
    staging.keep(name, made)
    return made


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Look for no cycles meanwhile: a figure makes tens of thousands of objects, and it took a fifth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _drawing_key(judged: JudgedFinding, figure: Figure) -> str:
    """Return a digest of what is drawn and of the code that draws."""
    finding: Any = judged.finding
    measured = judged.stored.digest() if judged.stored else ""
    parts = f"{measured} {figure.name} {code.digest(finding.figures.__module__)}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def _size(svg: bytes) -> tuple[int, int]:
    found = SIZE.search(svg)
    width, height = (float(found[1]), float(found[2])) if found else (640.0, 400.0)
    return round(width * 96 / 72), round(height * 96 / 72)
