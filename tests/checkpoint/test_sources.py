"""Where weights are looked for, in which order, and what is said when they can't be found."""

from importlib import metadata
from types import SimpleNamespace

import pytest

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.registry import FolderSource, HubSource, Model, PackageSource
from generators.checkpoint.sources import Hub, Origin, is_here, locate, locate_here
from tests.checkpoints import WEIGHTS, write_checkpoint


def model(*sources, name="tiny"):
    return Model(name=name, title=name, sources=sources)


def on_hub(repo="owner/tiny", **revision):
    return HubSource(hub=repo, **revision)


def test_sources_are_tried_in_their_order_and_each_says_why_it_has_none(fake):
    (write_checkpoint(fake.repository("owner/empty")) / WEIGHTS).unlink()
    write_checkpoint(fake.repository("owner/converted"))
    files = locate(model(on_hub("owner/empty"), on_hub("owner/converted")), (), Hub())
    assert files.origin.place == "owner/converted"
    (write_checkpoint(fake.repository("owner/empty")) / WEIGHTS).unlink()
    sources = (PackageSource(package="no-such-package-here"), on_hub("owner/empty"), on_hub("owner/none"))
    with pytest.raises(WeightsUnavailableError) as error:
        locate(model(*sources), (), Hub())
    assert str(error.value) == (
        "The package no-such-package-here isn't installed. owner/empty on the hub has no safetensors (no weights). "
        f"There is no model at {fake.url}/owner/none, or it is private: log in with `hf auth login`."
    )


def test_models_dirs_come_before_the_hub_in_their_order(fake, tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    first.mkdir()
    write_checkpoint(second / "tiny", seed=2)
    write_checkpoint(third / "tiny", seed=3)
    files = locate(model(on_hub()), (first, second, third), Hub())
    assert files.origin == Origin("folder", "tiny")
    assert files.fetch(WEIGHTS) == second / "tiny" / WEIGHTS
    assert fake.asked == []


def test_a_folder_that_is_named_comes_before_models_dirs_and_must_be_there(tmp_path):
    named = write_checkpoint(tmp_path / "elsewhere" / "tiny")
    write_checkpoint(tmp_path / "models" / "tiny")
    files = locate(model(FolderSource(folder=named)), (tmp_path / "models",), Hub())
    assert files.fetch(WEIGHTS) == named / WEIGHTS
    with pytest.raises(InputError, match="There is no folder"):
        locate(model(FolderSource(folder=tmp_path / "none")), (), Hub())
    absent = model(FolderSource(folder=tmp_path / "absent")).model_copy(update={"only_in_series": True})
    with pytest.raises(WeightsUnavailableError, match="There is no folder"):
        locate(absent, (), Hub())


def test_a_package_is_read_where_it_is_installed(tmp_path, monkeypatch):
    write_checkpoint(tmp_path / "inside" / "model")
    installed = [metadata.PackagePath("inside/__init__.py"), metadata.PackagePath("inside/model/model.safetensors")]
    package = SimpleNamespace(version="1.2", files=installed, locate_file=lambda file: tmp_path / file)
    monkeypatch.setattr(metadata, "distribution", lambda name: package)
    files = locate(model(PackageSource(package="carrier")), (), Hub())
    assert files.origin == Origin("package", "carrier", "1.2")
    assert files.fetch(WEIGHTS) == tmp_path / "inside" / "model" / WEIGHTS
    del installed[1]
    with pytest.raises(InputError, match=r"carrier contains no model\.safetensors"):
        locate(model(PackageSource(package="carrier")), (), Hub())


def test_what_is_here_is_found_without_a_hub(fake, tmp_path):
    there = write_checkpoint(tmp_path / "models" / "tiny")
    places, nowhere = (tmp_path / "models",), (tmp_path / "none",)
    absent = PackageSource(package="no-such-package-here")
    for found in (
        locate_here(model(on_hub()), places),
        locate_here(model(absent, on_hub()), places),
        locate_here(model(FolderSource(folder=there)), nowhere),
    ):
        assert found is not None and found.fetch(WEIGHTS) == there / WEIGHTS
    assert locate_here(model(on_hub(), FolderSource(folder=there)), nowhere) is None
    with pytest.raises(WeightsUnavailableError, match="isn't installed"):
        locate_here(model(absent, on_hub()), nowhere)
    assert fake.asked == []


def test_a_folder_that_a_command_lays_out_may_be_absent(fake, tmp_path):
    write_checkpoint(fake.repository("owner/tiny"))
    laid_out = FolderSource(folder=tmp_path / ".cache" / "real-models" / "tiny")
    assert not is_here(model(laid_out), ())
    assert locate(model(laid_out, on_hub()), (), Hub()).origin.kind == "hub"
    with pytest.raises(WeightsUnavailableError, match="make real-models lays it out"):
        locate(model(laid_out), (), Hub())
    assert is_here(model(FolderSource(folder=tmp_path / "elsewhere")), ()), "a wrong folder is a mistake"
    write_checkpoint(laid_out.folder)
    assert is_here(model(laid_out), ())
