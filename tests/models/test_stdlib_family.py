"""The family's table, its card and that of stdlib-gpt2, and that its published files belong together.

How its members are trained is tested in test_family_training.py, which needs PyTorch.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from models.training.stdlib_family.card import FOLDER, card_of, interval, read_records, rows_of
from models.training.stdlib_family.members import MEMBERS, RECIPE, named
from tests.conftest import ROOT

GPT2_RECORD = ROOT / "models" / "stdlib-gpt2" / "training.json"
MOST_BYTES = 4_000_000
# Fields that are one thing when they change together: the same number of tokens a step in shorter windows.
TOGETHER = {"n_ctx", "batch"}


def test_one_thing_differs_in_every_member():
    for member in MEMBERS:
        ours, usual = asdict(member.recipe), asdict(RECIPE)
        changed = {name for name in usual if ours[name] != usual[name]}
        things = len(changed - TOGETHER) + bool(changed & TOGETHER) + (member.scheme != "learned")
        assert things == (member.name != "learned"), member.name
        assert member.recipe.batch * member.recipe.n_ctx == RECIPE.batch * RECIPE.n_ctx


def test_the_recipe_is_that_of_stdlib_gpt2_for_fewer_steps_in_coarser_products():
    ours = {**asdict(RECIPE), "steps": 0, "threads": 0}
    assert ours.pop("precision") == "bfloat16"
    theirs = {**json.loads(GPT2_RECORD.read_text())["recipe"], "steps": 0, "threads": 0}
    assert {**ours, "betas": list(ours["betas"])} == theirs
    assert RECIPE.steps == 3_000
    assert RECIPE.threads == 1


def test_members_are_found_by_name_and_fewer_steps_change_nothing_else():
    assert len({member.name for member in MEMBERS}) == len(MEMBERS) == 11
    assert all(named(member.name) is member for member in MEMBERS)
    with pytest.raises(ValueError, match=r"no member 'rotery'; it has learned, none, rotary, alibi, "):
        named("rotery")
    whole = named("no-decay")
    assert whole.trained_for(7) == replace(whole, recipe=replace(whole.recipe, steps=7))


@pytest.fixture
def records() -> list[dict]:
    return read_records(FOLDER)


def test_an_interval_is_of_standard_errors():
    values = np.array([1.0, 2.0, 3.0, 6.0])
    assert interval(values).mean == 3.0
    assert interval(values).high == pytest.approx(3 + 1.96 * values.std(ddof=1) / 2)
    assert interval(np.array([2.0])).low == interval(np.array([2.0])).high == 2.0


def test_differences_are_taken_window_by_window(records):
    learned, *others = rows_of(records)
    for row in others:
        assert row.difference.mean == pytest.approx(row.loss.mean - learned.loss.mean)
        assert row.difference.high - row.difference.low < 0.5 * (row.loss.high - row.loss.low)


def test_losses_on_another_text_are_not_compared(records):
    records[1]["corpus"] = {**records[1]["corpus"], "sha256": "0" * 64}
    records[2]["held_out_window_losses"].pop()
    assert [row.difference is None for row in rows_of(records)[:4]] == [True, True, True, False]


def test_a_card_of_some_members_is_of_these(records, tmp_path):
    card = card_of(records[1:3])  # while the others aren't trained
    assert "2 small language models" in card
    assert "seeds of" not in card
    with pytest.raises(FileNotFoundError, match="holds no member of stdlib-family"):
        read_records(tmp_path)


# The published files


def numbers(svg: Path) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.\d+", svg.read_text("utf-8"))]


@pytest.mark.parametrize("model", ["stdlib-gpt2", "stdlib-family"])
def test_the_card_is_that_of_the_records_and_is_written_without_pytorch(model, tmp_path):
    published = ROOT / "models" / model
    for record in published.rglob("training.json"):
        (tmp_path / record.parent.relative_to(published)).mkdir(exist_ok=True)
        shutil.copy(record, tmp_path / record.relative_to(published))
    code = "import sys; from pathlib import Path; sys.modules['torch'] = None; "
    code += f"from models.training.{model.replace('-', '_')}.card import write_card; write_card(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True)
    assert (tmp_path / "README.md").read_text("utf-8") == (published / "README.md").read_text("utf-8")
    for name in ("loss.svg", "loss-dark.svg"):
        assert numbers(tmp_path / name) == pytest.approx(numbers(published / name), abs=0.01)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_the_files_of_a_member_belong_together(member):
    folder = FOLDER / member.name
    record = json.loads((folder / "training.json").read_text())
    gpt2 = json.loads(GPT2_RECORD.read_text())
    assert {**asdict(member.recipe), "betas": list(member.recipe.betas)} == record["recipe"]
    assert (record["name"], record["scheme"], record["differs"]) == (member.name, member.scheme, member.differs)
    assert record["corpus"] == gpt2["corpus"]
    counts = np.load(folder / "token_counts.npy", allow_pickle=False)
    digest = hashlib.sha256(counts.tobytes()).hexdigest()
    assert digest == record["token_counts_sha256"] == gpt2["token_counts_sha256"]
    assert (folder / "tokenizer.json").read_bytes() == (GPT2_RECORD.parent / "tokenizer.json").read_bytes()
    assert "gelu_pytorch_tanh" not in (folder / "config.json").read_text()
    assert record["losses"][-1][0] == record["held_out_losses"][-1][0] == member.recipe.steps
    assert record["held_out_losses"][-1][1] == pytest.approx(record["held_out_loss"], abs=0.01)
    assert np.mean(record["held_out_window_losses"]) == pytest.approx(record["held_out_loss"], abs=1e-3)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_knows_positions_as_its_scheme_says(member):
    from safetensors.numpy import load_file

    tensors = load_file(FOLDER / member.name / "model.safetensors")
    assert {values.dtype for values in tensors.values()} == {np.dtype(np.float16)}
    assert all(np.isfinite(values).all() for values in tensors.values())
    P = tensors.get("transformer.wpe.weight")
    if member.scheme in ("rotary", "alibi", "alibi-falcon"):
        assert P is None
        return
    if member.scheme == "sinusoidal":
        angles = np.arange(len(P))[:, None] / 10_000 ** (np.arange(64) / 64)
        waves = np.stack((np.sin(angles), np.cos(angles)), 2).reshape(P.shape)
        np.testing.assert_allclose(P, 0.02 * 2**0.5 * waves, atol=2e-5)  # of float16
    sizes = np.linalg.svd(P.astype(np.float64), compute_uv=False)
    rank = int((sizes > 0.01 * max(sizes[0], 1e-9)).sum())
    assert P.shape == (member.recipe.n_ctx, member.recipe.d_model)
    assert (rank == 0) == (member.scheme == "none")
    assert (rank <= 3) == (member.scheme in ("none", "rank-three"))
