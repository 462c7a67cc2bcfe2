"""Where weights are looked for, in which order, and what is said when they can't be had. The hub is a fake."""

import os
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub.errors import (
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
)

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, HubSource, Model, PackageSource
from generators.checkpoint.sources import Hub, Origin, in_folder, locate
from tests.checkpoints import WEIGHTS, write_checkpoint

COMMIT = "c0ffee" * 6 + "c0ff"


@dataclass
class FakeHub:
    """A model hub whose repositories are folders; what was asked for is in `asked`."""

    root: Path
    failure: Exception | None = None  # what the network does instead of answering
    asked: list[str] = field(default_factory=list)
    downloads: list[str] = field(default_factory=list)
    cached: set[str] = field(default_factory=set)  # "owner/model/file" that the local cache holds

    def add(self, repo: str, **checkpoint) -> Path:
        return write_checkpoint(self.snapshot(repo), **checkpoint)

    def cache(self, repo: str) -> None:
        self.cached |= {f"{repo}/{path.name}" for path in self.snapshot(repo).iterdir()}

    def snapshot(self, repo: str) -> Path:
        return self.root / repo / "snapshots" / COMMIT

    def model_info(self, repo: str, *, revision: str, timeout: float) -> SimpleNamespace:
        self.asked.append(f"{repo}@{revision}")
        if self.failure:
            raise self.failure
        if not self.snapshot(repo).is_dir():
            raise refusal(RepositoryNotFoundError, 404)
        siblings = [SimpleNamespace(rfilename=path.name) for path in self.snapshot(repo).iterdir()]
        return SimpleNamespace(sha=COMMIT, siblings=siblings)

    def download(self, repo: str, name: str, *, revision: str, local_files_only: bool = False) -> str:
        path = self.snapshot(repo) / name
        if f"{repo}/{name}" not in self.cached:
            if local_files_only:
                raise LocalEntryNotFoundError(f"{name} is not cached")
            if self.failure:
                raise self.failure
            if not path.is_file():
                raise refusal(RemoteEntryNotFoundError, 404)
            self.downloads.append(f"{repo}/{name}@{revision}")
        return str(path)


def refusal(kind: type[HfHubHTTPError], status: int) -> HfHubHTTPError:
    response = SimpleNamespace(headers={}, request=None, status_code=status)
    return kind(f"{status} from the hub\nwith details", response=response)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    hub = FakeHub(tmp_path / "hub")
    monkeypatch.setattr("huggingface_hub.HfApi", lambda: SimpleNamespace(model_info=hub.model_info))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub.download)
    return hub


def model(*sources, name="tiny"):
    return Model(name=name, title=name, sources=sources)


def on_hub(repo="owner/tiny", **revision):
    return HubSource(hub=repo, **revision)


# The hub


def test_a_repository_is_read_at_the_commit_that_its_revision_means(fake):
    fake.add("owner/tiny")
    checkpoint = open_checkpoint(locate(model(on_hub(revision="v2")), (), Hub()))
    assert checkpoint.origin == Origin("hub", "owner/tiny", "v2", COMMIT)
    assert checkpoint["position_embedding"].shape == (64, 24)
    assert fake.asked == ["owner/tiny@v2"]
    assert fake.downloads
    assert all(download.endswith(f"@{COMMIT}") for download in fake.downloads)


def test_only_what_is_read_is_downloaded(fake):
    fake.add("owner/tiny", shards=3)
    checkpoint = open_checkpoint(locate(model(on_hub()), (), Hub()))
    _ = checkpoint["position_embedding"]
    assert [name.split("/")[-1].split("@")[0] for name in fake.downloads] == [
        "config.json",
        "model.safetensors.index.json",
        "model-00001-of-00003.safetensors",
    ]


@pytest.mark.parametrize("failure", [ConnectionError("no route"), TimeoutError("too slow"), RuntimeError("odd")])
def test_an_unreachable_hub_is_asked_once_only(fake, failure):
    fake.failure = failure
    hub = Hub()
    for repo in ("owner/one", "owner/two", "owner/three"):
        with pytest.raises(WeightsUnavailableError, match=f"can't be reached and {repo} isn't in its local cache"):
            locate(model(on_hub(repo)), (), hub)
    assert fake.asked == ["owner/one@main"]


@pytest.mark.parametrize("failure", [ConnectionError("no route"), refusal(HfHubHTTPError, 503)], ids=["gone", "503"])
def test_out_of_reach_the_cached_snapshot_is_used(fake, failure):
    fake.add("owner/tiny")
    fake.cache("owner/tiny")
    fake.failure = failure
    checkpoint = open_checkpoint(locate(model(on_hub()), (), Hub()))
    assert checkpoint.origin == Origin("hub", "owner/tiny", "main", COMMIT)
    assert checkpoint["position_embedding"].shape == (64, 24)
    assert fake.downloads == []


def test_a_snapshot_cached_without_its_weights_is_unavailable_not_wrong(fake):
    fake.add("owner/tiny")
    fake.cached = {"owner/tiny/config.json"}
    fake.failure = ConnectionError("no route")
    with pytest.raises(WeightsUnavailableError, match=r"model\.safetensors of owner/tiny .*local cache"):
        open_checkpoint(locate(model(on_hub()), (), Hub()))


def test_a_refusal_says_nothing_about_other_repositories(fake):
    fake.add("owner/tiny")
    hub = Hub()
    with pytest.raises(WeightsUnavailableError, match=r"^The hub refuses owner/none at v1: 404 from the hub$"):
        locate(model(on_hub("owner/none", revision="v1")), (), hub)
    assert locate(model(on_hub()), (), hub).origin.commit == COMMIT


@pytest.mark.parametrize("name", ["own--er/tiny", "owner-/tiny", "owner/tiny.git"])
def test_a_name_that_no_repository_can_have_is_wrong_input(fake, name):
    with pytest.raises(InputError, match=f"'{name}' can't be a hub id"):
        locate(model(on_hub(name)), (), Hub())
    assert fake.asked == []


def test_the_second_source_is_tried_when_the_first_has_no_safetensors(fake):
    (fake.add("owner/pickled") / WEIGHTS).rename(fake.snapshot("owner/pickled") / "pytorch_model.bin")
    fake.add("owner/converted")
    files = locate(model(on_hub("owner/pickled"), on_hub("owner/converted")), (), Hub())
    assert files.origin.place == "owner/converted"


def test_when_no_source_has_them_each_says_why(fake):
    (fake.add("owner/pickled") / WEIGHTS).unlink()
    sources = (PackageSource(package="no-such-package-here"), on_hub("owner/pickled"), on_hub("owner/none"))
    with pytest.raises(WeightsUnavailableError) as error:
        locate(model(*sources), (), Hub())
    assert str(error.value) == (
        "The package no-such-package-here isn't installed. owner/pickled on the hub has no safetensors. "
        "The hub refuses owner/none: 404 from the hub"
    )


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(28, "No space left on device"), "can't be stored"),
        (refusal(HfHubHTTPError, 403), "can't be downloaded: 403"),
        (LocalEntryNotFoundError("connection lost"), "can't be downloaded now"),
        (RuntimeError("peer went away"), "can't be downloaded: peer went away"),
    ],
    ids=["disk", "refused", "lost", "odd"],
)
def test_a_download_that_fails_is_unavailable_weights(fake, failure, said):
    fake.add("owner/tiny")
    files = locate(model(on_hub()), (), Hub())
    fake.failure = failure
    with pytest.raises(WeightsUnavailableError, match=f"owner/tiny {said}"):
        open_checkpoint(files)


# Folders and packages


def test_models_dirs_come_before_the_hub_in_their_order(fake, tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    first.mkdir()
    write_checkpoint(second / "tiny", seed=2)
    write_checkpoint(third / "tiny", seed=3)
    files = locate(model(on_hub()), (first, second, third), Hub())
    assert files.origin == Origin("folder", "tiny")
    assert files.fetch(WEIGHTS) == second / "tiny" / WEIGHTS
    assert fake.asked == []


def test_an_explicit_folder_wins_over_models_dirs(tmp_path):
    named = write_checkpoint(tmp_path / "elsewhere" / "tiny")
    write_checkpoint(tmp_path / "models" / "tiny")
    files = locate(model(FolderSource(folder=named)), (tmp_path / "models",), Hub())
    assert files.fetch(WEIGHTS) == named / WEIGHTS


def test_a_folder_that_is_not_there_is_wrong_input(tmp_path):
    with pytest.raises(InputError, match="There is no folder"):
        locate(model(FolderSource(folder=tmp_path / "none")), (), Hub())


def test_files_of_a_folder_are_files(tmp_path):
    (tmp_path / WEIGHTS).mkdir()
    files = in_folder(tmp_path)
    assert files.fetch(WEIGHTS) is None
    assert files.fetch("config.json") is None
    with pytest.raises(InputError, match="can't be read: File name too long"):
        files.fetch("x" * 5000)


def test_a_folder_is_named_in_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"model-\xff")
    assert in_folder(folder).origin.place == "model-\N{REPLACEMENT CHARACTER}"


def test_a_package_is_read_where_it_is_installed(tmp_path, monkeypatch):
    write_checkpoint(tmp_path / "inside" / "model")
    installed = [metadata.PackagePath("inside/__init__.py"), metadata.PackagePath("inside/model/model.safetensors")]
    package = SimpleNamespace(version="1.2", files=installed, locate_file=lambda file: tmp_path / file)
    monkeypatch.setattr(metadata, "distribution", lambda name: package)
    files = locate(model(PackageSource(package="carrier")), (), Hub())
    assert files.origin == Origin("package", "carrier", "1.2")
    assert files.fetch(WEIGHTS) == tmp_path / "inside" / "model" / WEIGHTS
    del installed[1]
    with pytest.raises(InputError, match=r"carrier carries no model\.safetensors"):
        locate(model(PackageSource(package="carrier")), (), Hub())


@pytest.mark.real_weights
def test_minilm_is_read_from_its_package(minilm):
    checkpoint = open_checkpoint(locate(model(PackageSource(package=minilm)), (), Hub()))
    assert checkpoint.origin == Origin("package", minilm, metadata.version(minilm))
    assert checkpoint.architecture.family == "bert"
    assert checkpoint["position_embedding"].shape == (512, 384)
