"""A drawn figure as one small SVG for light pages and for dark ones.

Text and lines are in `currentColor`, which the picture itself sets: as for a light page, or, where its address ends
in `#dark`, as for a dark one (`:target`, which an `<img>` honours too). What matplotlib writes is said again in fewer
bytes: coordinates from the last point on, and pictures inside with a palette. Words are text, in the font that they
were set for where a reader has it, else in one as wide.
"""

import base64
import io
import re
import xml.etree.ElementTree as ET
from typing import Any

from generators.drawing.style import INK, INK_DARK, PAGE, PAGE_DARK

DARK = "dark"  # URL fragment of a picture on dark pages
DECIMALS = 2  # decimals of a point in positions and marks
ROUGHER = 1  # decimals in lines, which have many points: still far below a pixel
SMALL = 2000  # bytes of an embedded picture (a color scale) that keeps all its colors
COLOURS = 64  # colors of an embedded picture; more can't be told apart
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
METADATA, SHARED, PATH = (f"{{{SVG}}}{tag}" for tag in ("metadata", "defs", "path"))
WORDS = {f"{{{SVG}}}text", f"{{{SVG}}}tspan"}
TONES = f":root{{color:{INK};background:{PAGE}}}:root:target{{color:{INK_DARK};background:{PAGE_DARK}}}"
FONTS = "text{font-family:'DejaVu Sans',Verdana,sans-serif;fill:currentColor}"
SAID_BY_FONTS = re.compile(r"font-family:[^;]*;?|fill:currentColor;?|text-anchor:start;?")
UPRIGHT = re.compile(r"rotate\(-?0 ")
COMMAND = re.compile(r"([MLQCz])([^MLQCz]*)")
NUMBER = re.compile(r"-?\d+\.\d+")
PICTURE = "data:image/png;base64,"

ET.register_namespace("", SVG)
ET.register_namespace("xlink", XLINK)


def svg(figure: Any) -> bytes:
    """Write a drawn figure as an SVG that suits light and dark pages; the same figure gives the same bytes."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.BytesIO()
    _lay_out(figure)
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})  # `savefig` draws it twice
    return compact(buffer.getvalue())


def _lay_out(figure: Any) -> None:
    """Give a figure's axes their places.

    Half of what that takes is finding the ticks anew: for every spine, though spines lie on the axes' edge, and for
    the place of every axis' label, though most panels have none. Both are left out.
    """
    engine = figure.get_layout_engine()
    if engine is None:
        return
    for axes in figure.axes:
        for spine in axes.spines.values():
            spine.set_in_layout(False)
        for axis, place in ((axes.xaxis, (0.5, 0)), (axes.yaxis, (0, 0.5))):
            if not axis.get_label_text():
                axis.set_label_coords(*place)
    engine.execute(figure)
    figure.set_layout_engine("none")


def compact(drawn: bytes) -> bytes:
    root = ET.fromstring(drawn)
    for element in root.findall(METADATA):
        root.remove(element)
    marks = {id(path) for shared in root.iter(SHARED) for path in shared.iter(PATH)}
    for element in root.iter():
        _shorten(element, DECIMALS if id(element) in marks else ROUGHER)
    sheet = ET.Element(f"{{{SVG}}}style")
    sheet.text = TONES + FONTS
    root.insert(0, sheet)
    root.set("id", DARK)
    return ET.tostring(root).replace(b" />", b"/>")


def _shorten(element: ET.Element, decimals: int) -> None:
    element.text = element.text.strip() if element.text else None
    element.tail = None
    if "d" in element.attrib:
        element.set("d", relative(element.get("d", ""), decimals))
    for key in element.attrib.keys() & {"x", "y", "width", "height", "transform"}:
        if "scale" not in element.get(key, "") or "translate" in element.get(key, ""):
            element.set(key, NUMBER.sub(lambda number: _plain(float(number[0])), element.get(key, "")))
    if "style" in element.attrib:
        element.set(
            "style", element.get("style", "").replace(INK, "currentColor").replace(": ", ":").replace("; ", ";")
        )
    if element.tag in WORDS:
        _shorten_text(element)
    target = element.get(HREF, "")
    if target.startswith("#"):
        del element.attrib[HREF]
        element.set("href", target)
    elif target.startswith(PICTURE):
        element.set(HREF, _fewer_colours(target))


def _shorten_text(element: ET.Element) -> None:
    if UPRIGHT.match(element.get("transform", "")):
        del element.attrib["transform"]
    element.set("style", SAID_BY_FONTS.sub("", element.get("style", "")).rstrip(";"))


def relative(path: str, decimals: int = DECIMALS) -> str:
    """Return a path's data with every point from the one before it, rounded."""
    x = y = begin_x = begin_y = 0.0
    words: list[str] = []
    for command, numbers in COMMAND.findall(path):
        words.append(command.lower())
        if command == "z":
            x, y = begin_x, begin_y
            continue
        values = [round(float(number), decimals) for number in numbers.split()]
        for point_x, point_y in zip(values[::2], values[1::2], strict=True):
            words += [_short(point_x - x), _short(point_y - y)]
        x, y = values[-2:]
        if command == "M":
            begin_x, begin_y = x, y
    return _joined(words)


def _joined(words: list[str]) -> str:
    """Join commands and numbers with minimal separators; repeated commands are written once."""
    said, last, before = "", "", ""
    for word in words:
        if word.isalpha():
            said += "" if word == last and word != "m" else word
            last = word
        else:
            apart = word.startswith("-") or said[-1].isalpha() or (word.startswith(".") and "." in before)
            said += word if apart else f" {word}"
        before = word
    return said


def _short(value: float) -> str:
    return _plain(value).replace("0.", ".", 1) if abs(value) < 1 else _plain(value)


def _plain(value: float) -> str:
    text = f"{value:.{DECIMALS}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _fewer_colours(address: str) -> str:
    """Return an image with a palette if that is smaller; transparency is preserved."""
    from PIL import Image

    data = base64.b64decode(address.removeprefix(PICTURE))
    if len(data) < SMALL:
        return address
    with Image.open(io.BytesIO(data)) as picture:
        small = io.BytesIO()
        picture.convert("RGBA").quantize(COLOURS, Image.Quantize.FASTOCTREE).save(small, "PNG", optimize=True)
    return PICTURE + base64.b64encode(min(data, small.getvalue(), key=len)).decode()
