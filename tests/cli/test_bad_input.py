"""Bad checkpoints, names and registries: each is a sentence that costs nothing else."""

import json
import os
import pickle
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.checkpoints import (
    WEIGHTS,
    TouchesAFile,
    config_of,
    edit_header,
    read_safetensors,
    write_checkpoint,
)
from tests.cli.conftest import BAD_INPUT, SOME_FAILED, is_a_sentence, published, refused, results_of, without_root

INDEX = f"{WEIGHTS}.index.json"
WIDTH, POSITIONS = 24, 64
NOT_WHOLE = "isn't a whole safetensors file"


def evil(folder: Path) -> bytes:
    return pickle.dumps(TouchesAFile(folder / "unpickled"))


# What harms a checkpoint: functions of its folder.
Harm = Callable[[Path], object]


def put(name: str, content: str | bytes) -> Harm:
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def config(content: str | bytes) -> Harm:
    return put("config.json", content)


def sizes(**changed: object) -> Harm:
    return config(json.dumps({**config_of("gpt2"), **changed}))


def weights(change: Callable[[bytes], bytes]) -> Harm:
    return lambda folder: (folder / WEIGHTS).write_bytes(change((folder / WEIGHTS).read_bytes()))


def positions(**changed: object) -> Harm:
    """Say something else of the table of positions than what is stored."""
    return lambda folder: edit_header(folder / WEIGHTS, lambda header: header["wpe.weight"].update(changed))


def position_table(values: np.ndarray) -> Harm:
    return lambda folder: write_checkpoint(folder, changed={"wpe.weight": values}, dtype=None)


def index(content: str) -> Harm:
    """Write an index in place of the one file, before which transformers would not read it."""

    def write(folder: Path) -> None:
        (folder / WEIGHTS).unlink(missing_ok=True)
        (folder / INDEX).write_text(content, "utf-8")

    return write


def weight_map(content: object) -> Harm:
    return index(json.dumps({"weight_map": content}))


def only_pickle(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(evil(folder))


def shard_lacks_one(folder: Path) -> None:
    names, shard = read_safetensors(folder / WEIGHTS)[0], "model-00001-of-00001.safetensors"
    edit_header(folder / WEIGHTS, lambda header: header.update({"h.1.ln_9.weight": header.pop("h.1.ln_2.weight")}))
    (folder / WEIGHTS).rename(folder / shard)
    weight_map(dict.fromkeys([*names, "h.1.ln_9.weight"], shard))(folder)


def shard_is_pickle(folder: Path) -> None:
    only_pickle(folder)
    weight_map({"wpe.weight": "pytorch_model.bin"})(folder)


BROKEN = {
    "truncated-data": (weights(lambda content: content[:-100]), NOT_WHOLE),
    "offsets-overlap": (positions(data_offsets=[0, 4 * POSITIONS * WIDTH]), NOT_WHOLE),
    "shape-of-70-axes": (
        positions(shape=[POSITIONS, WIDTH, *[1] * 68]),
        "the position_embedding, has the shape 64 x 24 x 1 x 1",
    ),
    "dtype-unheard-of": (positions(dtype="Q7"), NOT_WHOLE),
    "header-huge": (weights(lambda content: struct.pack("<Q", 2**62) + content[8:]), NOT_WHOLE),
    "header-empty": (
        put(WEIGHTS, struct.pack("<Q", 2) + b"{}"),
        "no tensor of the family 'gpt2'; it begins with none",
    ),
    "nan": (
        position_table(np.full((POSITIONS, WIDTH), np.nan, np.float32)),
        "wpe.weight in the checkpoint broken holds NaN or infinity",
    ),
    "integers": (position_table(np.ones((POSITIONS, WIDTH), np.int32)), "is I32; the atlas reads F64, F32"),
    "no-config": (lambda folder: (folder / "config.json").unlink(), "The checkpoint broken has no config.json"),
    "config-not-json": (config("model_type: gpt2"), "config.json isn't valid JSON"),
    "config-a-list": (config(json.dumps([config_of("gpt2")])), "must hold a JSON object, not list"),
    "config-deep": (config("[" * 200_000 + "]" * 200_000), "config.json isn't valid JSON"),
    "family-with-escapes": (sizes(model_type="\x1b[31m\x07"), "is unknown; the atlas knows gpt2"),
    "other-family": (config(json.dumps(config_of("bert"))), "has no tensor of the family 'bert'"),
    "only-pickle": (only_pickle, "pytorch_model.bin is"),
    "pickle-in-disguise": (lambda folder: (folder / WEIGHTS).write_bytes(evil(folder)), NOT_WHOLE),
    "shard-is-pickle": (shard_is_pickle, "pytorch_model.bin isn't a whole safetensors file"),
    "shard-lacks-one": (
        shard_lacks_one,
        "h.1.ln_2.weight isn't in model-00001-of-00001.safetensors, which its index",
    ),
    "index-not-json": (index("{"), "model.safetensors.index.json isn't valid JSON"),
    "map-leaves-the-folder": (weight_map({"wpe.weight": "../../etc/passwd"}), "has no weight_map"),
    "map-to-nothing": (weight_map({"wpe.weight": "model-1-of-2.safetensors"}), "has no model-1-of-2.safetensors"),
    "map-to-endless-name": (weight_map({"wpe.weight": "x" * 5000}), "can't be read: File name too long"),
    "map-with-nul": (weight_map({"wpe.weight": "a\0b"}), "broken has no a"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_checkpoint_is_a_sentence_that_costs_nothing_else(atlas, unharmed, broken):
    harm, said = BROKEN[broken]
    folder = write_checkpoint(unharmed / "broken")
    harm(folder)
    run = atlas("compute", "./broken")
    err = refused(run)
    assert err.splitlines()[-1].startswith("atlas: broken: ")
    assert said in err
    assert run.out == ""
    assert not (folder / "unpickled").exists()


def test_pickle_would_have_run(tmp_path):
    """The trap of the tests above works."""
    only_pickle(write_checkpoint(tmp_path))
    pickle.loads((tmp_path / "pytorch_model.bin").read_bytes())
    assert (tmp_path / "unpickled").exists()


def test_layers_that_the_file_lacks_are_named(atlas, project):
    folder = write_checkpoint(project / "broken")
    sizes(n_layer=6)(folder)
    assert "The checkpoint lacks h.2.ln_" in refused(atlas("compute", "./broken", "--only", "gains"), SOME_FAILED)


@pytest.mark.parametrize("closed", [WEIGHTS, "config.json", ""], ids=["weights", "config", "folder"])
def test_what_may_not_be_read_is_a_sentence(atlas, closed):
    with tempfile.TemporaryDirectory() as open_to_all:
        project = Path(open_to_all)
        (project / "models.yml").write_text("[]")
        folder = write_checkpoint(project / "broken")
        project.chmod(0o777)
        (folder / closed).chmod(0)
        with without_root():
            options = ("--results", project / "results", "--registry", project / "models.yml")
            run = atlas("compute", folder, *options)
        (folder / closed).chmod(0o700)
    assert run.code == BAD_INPUT
    assert is_a_sentence(run.err)
    assert "Permission denied" in run.err


def test_weights_gone_bad_leave_the_results_computed_from_them_before(atlas, unharmed):
    BROKEN["nan"][0](unharmed / "good")
    refused(atlas("compute", "good"))


@pytest.mark.parametrize("harm", ["no-config", "nan", "truncated-data"])
def test_a_report_on_a_broken_checkpoint_is_a_sentence_and_the_old_report_stays(atlas, project, harm):
    BROKEN[harm][0](write_checkpoint(project / "broken"))
    old = {project / "report" / name: "the old report" for name in ("index.html", ".results/good/gains.json")}
    for path, content in old.items():
        path.parent.mkdir(parents=True)
        path.write_text(content)
    refused(atlas("report", "./broken"))
    assert {path: path.read_text() for path in (project / "report").rglob("*.*") if path.is_file()} == old


def test_folders_with_hostile_names_become_slugs(atlas, project):
    write_checkpoint(project / "<img src=x onerror=alert(1)>")
    assert atlas("compute", "./<img src=x onerror=alert(1)>").code == 0
    assert sorted(path.name for path in (project / "results").iterdir()) == ["good", "img-src-x-onerror-alert-1"]
    name = os.fsdecode(b"model-\xff")
    write_checkpoint(project / name)
    run = atlas("compute", f"./{name}")
    assert run.code == 0
    assert json.loads(atlas("show", "model", "--json").out)["model"]["source"]["place"] == "model-\ufffd"


def test_a_folder_needs_no_registry_unless_one_is_named(atlas, project):
    (project / "models.yml").unlink()
    shutil.move(project / "good", project / "own")
    assert atlas("compute", "./own", "--skip-runs", "--only", "gains").code == 0
    assert published(project, "own").findings["gains"].status == "computed"
    before = results_of(project)
    assert "The registry other.yml can't be read" in refused(atlas("compute", "./own", "--registry", "other.yml"))
    assert "'nothing' is no model in models.yml, no folder" in refused(atlas("compute", "nothing"))
    assert results_of(project) == before
