"""Figures drawn, or taken from the cache if the same code has drawn the same measurements before."""

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from generators.base import digests
from generators.base.cache import key
from generators.base.errors import AtlasError
from generators.base.plain import as_compact_json
from generators.compute.judged import JudgedFinding
from generators.drawing import svg
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


class DrawnFile(NamedTuple):
    """Where a drawn figure is on light and on dark pages, from the site's root, and its size in CSS pixels."""

    light: str
    dark: str
    width: int
    height: int


Lost = Callable[[str, Exception], None]  # is told of which finding figures can't be drawn, and why


@contextmanager
def _costing_its_figures(finding: str, lost: Lost) -> Iterator[None]:
    """Let numbers that aren't measured yet, or arrays that fit no figure, cost a finding its figures alone."""
    try:
        yield
    except NotMeasuredError:
        return
    except AtlasError:
        raise
    except Exception as error:  # whatever arrays of other shapes make of the drawing
        lost(finding, error)


def pictures(
    judged: JudgedFinding, model: str, staging: Staging, lost: Lost, *, signature_only: bool = False
) -> list[Picture]:
    """Draw every figure of one finding of one model, but those that need numbers which were not measured yet."""
    made: list[Picture] = []
    if judged.measured is None:
        return made
    with _costing_its_figures(judged.finding.name, lost):
        for figure in judged.finding.figures(judged.measured):
            if not signature_only or figure.name == judged.finding.signature:
                with suppress(NotMeasuredError):
                    made.append(_picture(judged, figure, model, staging, lost))
    return made


def _picture(judged: JudgedFinding, figure: Figure, model: str, staging: Staging, lost: Lost) -> Picture:
    files = drawn(f"figures/{model}/{figure.name}", _made_from(judged, figure), figure.draw, staging)
    data = None
    with _costing_its_figures(judged.finding.name, lost):  # but for the picture, which is drawn
        if figure.interactive is not None:
            numbers = as_compact_json(figure.interactive().as_json())
            data = f"data/{model}/{figure.name}.json"
            staging.write(data, numbers)
    assert judged.measured is not None
    words = caption(judged.finding.name, figure.name, judged.measured)
    return Picture(figure.name, figure.title, words, *files, data)


def drawn(path: str, made_from: Sequence[object], draw: Callable[[], Any], staging: Staging) -> DrawnFile:
    """Write a figure; return where it is, and its size.

    `path` has no ending. It is drawn only if the cache has nothing that was drawn from the same.
    """
    name, data = f"{path}.svg", _svg(made_from, draw, staging)
    staging.write(name, data)
    return DrawnFile(name, f"{name}#{svg.DARK}", *_size(data))


def _svg(made_from: Sequence[object], draw: Callable[[], Any], staging: Staging) -> bytes:
    def make() -> bytes:
        with _nothing_collected():
            return svg.svg(draw())

    return staging.cache.get_or_make(key(*made_from, digests.of_drawing(), ending=".svg"), make)


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


def _made_from(judged: JudgedFinding, figure: Figure) -> tuple[str, ...]:
    finding: Any = judged.finding
    measured = judged.stored.digest() if judged.stored else ""
    return measured, figure.name, digests.of_drawing(f"findings/{finding.name}")


def _size(svg: bytes) -> tuple[int, int]:
    found = SIZE.search(svg)
    width, height = (float(found[1]), float(found[2])) if found else (640.0, 400.0)
    return round(width * 96 / 72), round(height * 96 / 72)
