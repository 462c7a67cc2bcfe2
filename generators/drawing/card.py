"""The picture by which a page is shown where its link is shared: its figure on white, 1200 x 630 pixels."""

import io
from typing import Any

import numpy as np

from generators.drawing.style import PAGE

WIDTH, HEIGHT = 1200, 630  # pixels
MARGIN = 30
COLOURS = 128  # colors in the picture; more can't be told apart


def png(figure: Any) -> bytes:
    """Return a figure as a PNG, as large as there is room; the same figure gives the same bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    width, height = figure.get_size_inches()
    figure.set_dpi(min((WIDTH - 2 * MARGIN) / width, (HEIGHT - 2 * MARGIN) / height))
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    picture = Image.fromarray(np.array(canvas.buffer_rgba()))
    page = Image.new("RGB", (WIDTH, HEIGHT), PAGE)
    page.paste(picture, ((WIDTH - picture.width) // 2, (HEIGHT - picture.height) // 2), picture)
    buffer = io.BytesIO()
    page.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "PNG")
    return buffer.getvalue()
