"""What is said where the hub refuses: what the trouble is, the model's address, what to do."""

import pytest

from generators.base.errors import WeightsUnavailableError
from tests.checkpoint.fake_hub import HubFault
from tests.checkpoint.test_hub import opened, published
from tests.checkpoints import WEIGHTS

EVERYWHERE = pytest.mark.parametrize("where", ["/api/", "config.json", WEIGHTS])


def said(fake, kind: str, where: str = "config.json") -> str:
    """Return what is said of a refusal, with the hub's address as the public one."""
    published(fake)
    fake.faults.append(HubFault(kind, where, times=10))
    with pytest.raises(WeightsUnavailableError) as error:
        _ = opened()["position_embedding"]
    return str(error.value).replace(fake.url, "https://huggingface.co")


@EVERYWHERE
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            "gated",
            "https://huggingface.co/owner/tiny is gated. Ask for access on that page, then log in: `hf auth login`.",
        ),
        (
            "private",
            "There is no model at https://huggingface.co/owner/tiny, or it is private: log in with `hf auth login`.",
        ),
    ],
)
def test_without_a_token(fake, kind, sentence, where):
    assert said(fake, kind, where) == sentence


@EVERYWHERE
@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (
            "no-access",
            "https://huggingface.co/owner/tiny is gated, and the account of your token has no access to it. Ask for "
            "access on that page; to use another account, run `hf auth login`.",
        ),
        (
            "bad-token",
            "The hub doesn't accept your token: it is wrong or has expired, so https://huggingface.co/owner/tiny "
            "can't be read. Make a new one at https://huggingface.co/settings/tokens and run `hf auth login`.",
        ),
        (
            "fine-grained",
            "https://huggingface.co/owner/tiny is gated, and your token isn't allowed to read gated models. Allow it "
            "at https://huggingface.co/settings/tokens, or use another token: run `hf auth login`.",
        ),
        (
            "absent",
            "There is no model at https://huggingface.co/owner/tiny, or your token can't see it. To use another "
            "account, run `hf auth login`.",
        ),
    ],
)
def test_with_a_token(fake, tmp_path, kind, sentence, where):
    (tmp_path / "token").write_text("hf_token")  # as `hf auth login` stores it
    assert said(fake, kind, where) == sentence


def test_a_token_in_the_environment_is_named_as_it_comes_first(fake, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    assert said(fake, "bad-token") == (
        "The hub doesn't accept the token in HF_TOKEN: it is wrong or has expired, so https://huggingface.co/owner/"
        "tiny can't be read. Make a new one at https://huggingface.co/settings/tokens and set HF_TOKEN anew, or "
        "unset it and run `hf auth login`."
    )


def test_a_renamed_model_is_read_by_its_old_name(fake):
    published(fake, "owner/new")
    fake.renamed["owner/old"] = "owner/new"
    checkpoint = opened("owner/old")
    assert checkpoint["position_embedding"].shape == (64, 24)


def test_trouble_with_one_model_is_that_model_s(fake):
    published(fake)
    published(fake, "owner/other")
    fake.faults.append(HubFault("gated", "/owner/tiny/", times=99))
    with pytest.raises(WeightsUnavailableError, match="is gated"):
        opened()
    assert opened("owner/other")["position_embedding"].shape == (64, 24)
