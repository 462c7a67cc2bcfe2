"""The hub by byte ranges: exactly what is asked for, cached, and nothing that isn't the file."""

import numpy as np
import pytest

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import HubSource, Model
from generators.checkpoint.sources import Hub, Origin, files, in_folder, locate
from tests.checkpoint.fake_hub import COMMIT, HubFault
from tests.checkpoints import WEIGHTS, edit_header, tensors_of, write_checkpoint


def opened(repo="owner/tiny", revision="main", hub=None):
    source = HubSource(hub=repo, revision=revision)
    return open_checkpoint(locate(Model(name="tiny", title="tiny", sources=(source,)), (), hub or Hub()))


def published(fake, repo="owner/tiny", **checkpoint):
    return write_checkpoint(fake.repository(repo), **checkpoint)


def is_whole(checkpoint) -> None:
    np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])


@pytest.mark.parametrize("whole", [False, True])
def test_everything_is_asked_for_at_the_commit_that_a_revision_means(fake, tiny, whole):
    checkpoint = opened(revision="v2")
    checkpoint.prefetch(list(checkpoint), whole=whole)
    assert checkpoint.origin == Origin("hub", "owner/tiny", "v2", COMMIT)
    is_whole(checkpoint)
    assert all("/resolve/" not in a.path or f"/{COMMIT}/" in a.path for a in fake.asked)


@pytest.mark.parametrize(
    ("dtype", "shards", "numbers"),
    [("float32", 1, 1 << 22), ("float32", 3, 1), ("float16", 3, 100), ("bfloat16", 1, 100), ("float64", 1, 1 << 22)],
)
def test_every_tensor_is_what_it_is_in_the_file(fake, monkeypatch, dtype, shards, numbers):
    monkeypatch.setattr(files, "NUMBERS_AT_ONCE", numbers)  # read in parts of so many
    folder = published(fake, shards=shards, dtype=dtype)
    local, far, cached = open_checkpoint(in_folder(folder)), opened(), opened()
    assert set(local) == set(far)
    for role in local:
        for other in (far, cached):
            np.testing.assert_array_equal(other[role], local[role], strict=True)
            assert other.record(role) == local.record(role)


def test_what_is_cached_is_not_asked_for_again_unless_it_is_damaged(fake, tiny, tmp_path):
    is_whole(opened())
    fake.asked.clear()
    is_whole(opened())
    assert [asked.path for asked in fake.asked] == ["/api/models/owner/tiny/revision/main"]
    (cached,) = [path for path in (tmp_path / "cache" / "tensors").rglob("*") if path.is_file()]
    cached.write_bytes(cached.read_bytes()[:-1] + b"\x7f")
    is_whole(opened())
    assert len(fake.weights_asked()) == 1


def test_what_the_client_has_whole_is_read_there(fake, tmp_path):
    from huggingface_hub import hf_hub_download

    published(fake)
    for name in ("config.json", WEIGHTS):
        hf_hub_download("owner/tiny", name)
    fake.asked.clear()
    for hub in (Hub(), Hub(offline=True)):
        checkpoint = opened(hub=hub)
        assert all(checkpoint[role].size for role in checkpoint)
    assert fake.weights_asked() == []
    assert not (tmp_path / "cache" / "tensors").exists()


def test_files_that_are_needed_whole_come_whole_once_and_with_progress(fake, monkeypatch):
    monkeypatch.setattr("generators.base.progress.SHOW_EVERY", 0.0)
    folder = published(fake, shards=3)
    lines: list[str] = []
    checkpoint = opened()
    checkpoint.prefetch(list(checkpoint), lines.append, whole=True)
    sent = fake.sent
    assert None in {asked.span for asked in fake.weights_asked()}
    assert sent >= sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert all(checkpoint[role].size for role in checkpoint)
    assert fake.sent == sent
    assert "downloading: " in lines[0] and lines[-1].endswith(" left")


def test_offline_main_is_found_again(fake, tiny, monkeypatch):
    is_whole(opened())
    fake.asked.clear()
    checkpoint = opened(hub=Hub(offline=True))
    assert checkpoint.origin == Origin("hub", "owner/tiny", "main", COMMIT)
    is_whole(checkpoint)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the client's own switch
    is_whole(opened())
    assert fake.asked == []
    with pytest.raises(WeightsUnavailableError, match=r"model\.safetensors of owner/tiny isn't in the local cache"):
        _ = opened()["token_embedding"]


# Answers that aren't the file


@pytest.mark.parametrize("kind", ["html", "shift", "whole"])
def test_an_answer_that_is_not_the_part_asked_for_is_not_used(fake, tiny, kind):
    checkpoint = opened()
    fake.faults.append(HubFault(kind, WEIGHTS))
    with pytest.raises(WeightsUnavailableError, match=r"model\.safetensors of owner/tiny can't be read"):
        _ = checkpoint["position_embedding"]
    is_whole(checkpoint)


HARMS = {
    "short": lambda path: path.write_bytes(path.read_bytes()[:-5]),
    "endless-header": lambda path: path.write_bytes((10**9).to_bytes(8, "little") + path.read_bytes()[8:]),
    "no-json": lambda path: path.write_bytes((4).to_bytes(8, "little") + b"[[[["),
    "backwards": lambda path: edit_header(path, lambda h: h["wpe.weight"].update(data_offsets=[8, 0])),
    "too-wide": lambda path: edit_header(path, lambda h: h["wpe.weight"].update(shape=[10**15, 24])),
    "no-shape": lambda path: edit_header(path, lambda h: h["wpe.weight"].update(shape="wide")),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_file_is_a_sentence(fake, harm):
    HARMS[harm](published(fake) / WEIGHTS)
    with pytest.raises(InputError, match=r"model\.safetensors of owner/tiny isn't a (whole )?safetensors file"):
        opened()


@pytest.mark.parametrize("name", ["own--er/tiny", "owner-/tiny", "owner/tiny.git"])
def test_a_name_that_no_repository_can_have_is_wrong_input(fake, name):
    with pytest.raises(InputError, match=f"'{name}' can't be a hub id"):
        opened(name)
    assert fake.asked == []


# Where the hub refuses

SETTINGS = "/settings/tokens"


def said(fake, kind: str, where: str = "config.json") -> str:
    published(fake)
    fake.faults.append(HubFault(kind, where, times=10))
    with pytest.raises(WeightsUnavailableError) as error:
        _ = opened()["position_embedding"]
    assert f"{fake.url}/owner/tiny" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("where", ["/api/", "config.json", WEIGHTS])
@pytest.mark.parametrize(
    ("has_token", "kind", "words"),
    [
        (False, "gated", ("is gated. Ask for access", "log in: `hf auth login`")),
        (False, "private", ("There is no model", "or it is private", "hf auth login")),
        (True, "no-access", ("is gated", "your token has no access", "use another account")),
        (True, "bad-token", ("doesn't accept your token", SETTINGS, "hf auth login")),
        (True, "absent", ("There is no model", "your token can't see it")),
    ],
)
def test_a_refusal_says_what_to_do(fake, tmp_path, has_token, kind, words, where):
    if has_token:
        (tmp_path / "token").write_text("hf_token")  # as `hf auth login` stores it
    sentence = said(fake, kind, where)
    assert all(word in sentence for word in words)


def test_a_token_in_the_environment_is_named_as_it_comes_first(fake, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    sentence = said(fake, "bad-token")
    assert "the token in HF_TOKEN" in sentence and "unset it and run `hf auth login`" in sentence


def test_a_revision_that_does_not_exist_is_named(fake, tiny):
    fake.faults.append(HubFault("no-revision", "/api/"))
    with pytest.raises(WeightsUnavailableError, match="owner/tiny at v9 can't be read: the hub answers 404"):
        opened(revision="v9")


def test_a_renamed_model_is_read_by_its_old_name(fake):
    published(fake, "owner/new")
    fake.renamed["owner/old"] = "owner/new"
    is_whole(opened("owner/old"))
