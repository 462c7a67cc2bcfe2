"""A checkpoint that an installed Python package carries."""

from importlib import metadata
from pathlib import Path

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.registry import PackageSource
from generators.checkpoint.sources.files import SHARD_INDEX, WEIGHTS, Files, Origin
from generators.checkpoint.sources.folder import in_folder


def in_package(source: PackageSource) -> Files:
    """Return the files of the checkpoint in a package.

    Raises:
        InputError: it carries none.
        WeightsUnavailableError: it isn't installed.
    """
    try:
        package = metadata.distribution(source.package)
    except metadata.PackageNotFoundError:
        raise WeightsUnavailableError(f"The package {source.package} isn't installed.") from None
    for file in package.files or ():
        if file.name in (WEIGHTS, SHARD_INDEX):
            folder = Path(str(package.locate_file(file))).parent
            return in_folder(folder, Origin("package", source.package, package.version))
    raise InputError(f"The package {source.package} carries no {WEIGHTS}.")
