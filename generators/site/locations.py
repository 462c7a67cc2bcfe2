"""Where templates, hand-written pages and MkDocs' settings stand: in the repository, or inside a wheel."""

from importlib import resources
from pathlib import Path

TRAINING_RECORD = "training.json"  # beside the weights of a model that was trained here


def packaged(name: str) -> Path:
    """Return `templates`, `site_src` or `mkdocs.yml` of this installation.

    A wheel carries them inside the package; in the repository they stand at the top level, beside it.
    """
    package = Path(str(resources.files("generators")))
    inside = package / name
    return inside if inside.exists() else package.parent / name
