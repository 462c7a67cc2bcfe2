"""How the family is trained: one start for all, one thing changed, the same each time, and files that load.

These need PyTorch; `make test-training` runs them in `.venv-train`.
"""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from models.training.stdlib_family.card import FOLDER
from models.training.stdlib_family.members import MEMBERS, RECIPE, FamilyMember, named
from tests.models.conftest import KILLED, NEVER, trained

pytestmark = pytest.mark.training

TWO = ("rotary", "rank-three")
BUILDS_ALIBI = {"alibi-falcon": "build_alibi_tensor", "alibi": "build_mpt_alibi_tensor"}
SMALL = replace(RECIPE, n_layer=2, n_head=2, d_model=16, n_ctx=32, batch=2, steps=4)
# One window a step; notes and measures every 20 steps.
CODE = f"""{KILLED}
from models.training.stdlib_family import train
run.NOTE_EVERY = run.MEASURE_EVERY = 20
whole = train.named
train.named = lambda name: replace(whole(name), recipe=replace(whole(name).recipe, batch=1))
train.typer.run(train.main)
"""


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    torch = pytest.importorskip("torch", reason="PyTorch isn't installed here: make test-training")
    torch.set_num_threads(1)


def small(member: FamilyMember) -> FamilyMember:
    short = replace(SMALL, n_ctx=8) if member.recipe.n_ctx < RECIPE.n_ctx else SMALL
    return replace(member, recipe=replace(short, seed=member.recipe.seed, weight_decay=member.recipe.weight_decay))


def start(name: str):
    from models.training.stdlib_family.schemes import SCHEMES

    return SCHEMES[named(name).scheme](named(name).recipe).eval()


def logits(model):
    import torch

    ids = torch.arange(2 * 64).reshape(2, 64) * 31
    with torch.no_grad():
        return model(ids, use_cache=False).logits


# MPT computes GELU exactly, GPT-2 by tanh.
@pytest.mark.parametrize(("name", "near"), [("rotary", 1e-6), ("alibi-falcon", 1e-6), ("alibi", 2e-4)])
def test_what_knows_no_position_by_a_table_starts_as_the_gpt2_without_one(monkeypatch, name, near):
    """Turned by no angle, NeoX computes what GPT-2 does at P = 0; so do Falcon and MPT with slopes of zero."""
    import torch

    without, ours = logits(start("none")), start(name)
    assert (logits(ours) - without).abs().max() > 100 * near
    if name == "rotary":
        ours.gpt_neox.rotary_emb.inv_freq.zero_()
    else:
        modeling, build = sys.modules[type(ours).__module__], BUILDS_ALIBI[name]
        sloped = getattr(modeling, build)
        monkeypatch.setattr(modeling, build, lambda *a, **k: 0 * sloped(*a, **k))
    assert torch.allclose(logits(ours), without, atol=near)


def test_all_that_is_no_position_starts_the_same():
    import torch

    learned = start("learned").state_dict()
    for name in ("none", "sinusoidal", "rank-three", "context-64", "no-decay"):
        other = start(name).state_dict()
        shared = [key for key in learned if "wpe" not in key]
        assert all(torch.equal(learned[key], other[key]) for key in shared), name
    P = start("context-64").transformer.wpe.weight
    assert torch.equal(P, learned["transformer.wpe.weight"][:64])
    assert not torch.equal(start("learned-seed-1").transformer.wte.weight, learned["transformer.wte.weight"])


def test_rank_three_starts_nearest_to_the_learned_start():
    from models.training.files import plain

    P = start("learned").transformer.wpe.weight.detach().numpy()
    left, sizes, right = np.linalg.svd(P, full_matrices=False)
    ours = plain(start("rank-three")).transformer.wpe.weight.detach().numpy()
    assert ours == pytest.approx((left[:, :3] * sizes[:3]) @ right[:3], abs=1e-6)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_takes_steps_and_loads_as_what_it_is(member, library, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from models.training.corpus import encoded, read_library
    from models.training.files import write_model
    from models.training.stdlib_family.train import begin

    corpus = read_library(library)
    text = encoded(corpus)
    run = begin(small(member), corpus, tmp_path, "cpu")
    held = {name: values.clone() for name, values in run.model.named_parameters() if not values.requires_grad}
    assert bool(held) == (member.scheme in ("none", "sinusoidal"))
    losses = [run.advance(text.trained) for _ in range(SMALL.steps)]
    assert np.isfinite(losses).all()
    assert all(torch.equal(values, held[name]) for name, values in run.model.named_parameters() if name in held)

    ids = torch.from_numpy(text.trained[None, :8])
    with torch.no_grad():
        ours = run.model.eval()(ids).logits
    write_model(run, text, tmp_path / "out")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert (model.dtype, model.config.model_type) == (torch.float16, run.model.config.model_type)
    assert tokenizer.model_max_length == run.recipe.n_ctx
    assert tokenizer("import os\n", return_tensors="pt").input_ids.max() < model.config.vocab_size
    with torch.no_grad():
        theirs = model.float()(ids).logits
    assert torch.allclose(ours, theirs, atol=1e-3)  # weights were rounded to half precision
    if member.scheme == "rank-three":
        sizes = np.linalg.svd(model.transformer.wpe.weight.detach().float().numpy(), compute_uv=False)
        assert sizes[3] < 0.01 * sizes[2]  # what float16 rounds


def test_members_that_are_named_are_trained_and_written(library, tmp_path):
    """That a training goes on after it was stopped: test_training.py."""
    given = ("--steps", 40, "--library", library, "--work", tmp_path / "work", "--out", tmp_path / "out")
    run = trained(CODE, NEVER, *TWO, *given)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out" / "README.md").is_file()
    for name in TWO:
        record = json.loads((tmp_path / "out" / name / "training.json").read_text())
        assert [step for step, _ in record["losses"]] == [20, 40]
        assert record["losses"][-1][1] < record["losses"][0][1]
        assert np.mean(record["held_out_window_losses"]) == pytest.approx(record["held_out_loss"], rel=0.01)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_published_member_loads_and_has_the_loss_that_its_record_says(member):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from models.training.corpus import encode, read_library
    from models.training.losses import token_losses

    folder = FOLDER / member.name
    record = json.loads((folder / "training.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert model.num_parameters() == record["parameters"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    corpus = read_library()
    if corpus.sha256 != record["corpus"]["sha256"]:
        pytest.skip("another version of the standard library")
    ids = encode(corpus.held_out, tokenizer.backend_tokenizer)
    n_windows = len(record["held_out_window_losses"])
    first = len(np.array_split(ids[1:], n_windows)[0])
    losses = token_losses(model, ids[: first + 1 + member.recipe.n_ctx], member.recipe.n_ctx, "cpu")
    assert losses[:first].mean() == pytest.approx(record["held_out_window_losses"][0], abs=1e-4)
