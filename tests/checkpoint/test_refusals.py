"""What is said where the hub refuses: what the trouble is, the model's address, what to do."""

import pytest

from generators.base.errors import WeightsUnavailableError
from tests.checkpoint.fake_hub import HubFault
from tests.checkpoint.test_hub import is_whole, opened, published
from tests.checkpoints import WEIGHTS

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
        (True, "fine-grained", ("is gated", "your token isn't allowed to read gated models", SETTINGS)),
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


def test_a_revision_that_does_not_exist_is_named(fake):
    published(fake)
    fake.faults.append(HubFault("no-revision", "/api/"))
    with pytest.raises(WeightsUnavailableError, match="owner/tiny at v9 can't be read: there is no such revision"):
        opened(revision="v9")


def test_a_renamed_model_is_read_by_its_old_name(fake):
    published(fake, "owner/new")
    fake.renamed["owner/old"] = "owner/new"
    is_whole(opened("owner/old"))
