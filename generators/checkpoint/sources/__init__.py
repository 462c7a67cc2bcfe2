"""A checkpoint's files, wherever they are: a folder, an installed package, a model hub."""

from generators.checkpoint.config import CONFIG
from generators.checkpoint.sources.dialects import Layout
from generators.checkpoint.sources.files import LARGEST_TEXT, Files, Origin, check_size
from generators.checkpoint.sources.formats import FLOATING, Header
from generators.checkpoint.sources.hub import Hub
from generators.checkpoint.sources.places import Places, in_folder, is_here, locate, locate_here

__all__ = [
    "CONFIG",
    "FLOATING",
    "LARGEST_TEXT",
    "Files",
    "Header",
    "Hub",
    "Layout",
    "Origin",
    "Places",
    "check_size",
    "in_folder",
    "is_here",
    "locate",
    "locate_here",
]
