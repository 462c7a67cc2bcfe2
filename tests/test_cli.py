"""The `atlas` command: what it prints, how it exits, and that bad input is a sentence that costs nothing else."""

import json
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from generators import findings as all_findings
from generators.base.errors import WeightsUnavailableError
from generators.base.text import SYMBOLS
from generators.checkpoint.registry import Model, Registry, load_registry
from generators.compute.judged import judged_model
from generators.compute.records import ModelFindings
from generators.compute.results import UP_TO_DATE, Store
from tests.checkpoints import (
    WEIGHTS,
    config_of,
    edit_header,
    read_safetensors,
    tensors_of,
    write_checkpoint,
    write_json,
)
from tests.conftest import ROOT, Run
from tests.toy_findings import toy

ATLAS = Path(sysconfig.get_path("scripts")) / "atlas"
HEAVY = ("numpy", "pydantic", "matplotlib", "scipy", "safetensors", "huggingface_hub", "yaml", "jinja2")
BAD_INPUT, SOME_FAILED = 2, 1
NOTHING = SimpleNamespace(damaged=[])


@pytest.fixture(scope="module")
def one_good_model(tmp_path_factory) -> Path:
    """Return a folder with a registry, a checkpoint called `good`, and its results."""
    project = tmp_path_factory.mktemp("project")
    write_checkpoint(project / "good")
    entry = "- name: {0}\n  title: {1}\n  sources: [{{{2}}}]\n"
    (project / "models.yml").write_text(
        entry.format("good", "Good model", "folder: good")
        + entry.format("away", "Away", "package: no-such-package-here")
        + "  adds: 'size: none'\n"
    )
    command = [ATLAS, "compute", "--results", "results", "good"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return project


@pytest.fixture
def project(one_good_model, tmp_path, monkeypatch) -> Path:
    """Return a copy of the folder with one good model, and work in it."""
    shutil.copytree(one_good_model, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def results_of(project: Path) -> dict[str, bytes]:
    """Return all files of results but for what they were made from, which names this folder."""
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in (project / "results").rglob("*")
        if path.is_file() and path.name != UP_TO_DATE
    }


def published(project: Path, name: str = "good") -> ModelFindings:
    """Return what is stored of a model, judged now."""
    judged = judged_model(Store(project / "results"), name)
    assert judged is not None
    return judged.published()


@pytest.fixture
def unharmed(project) -> Iterator[Path]:
    """Return the folder with one good model, whose results must be the same when the test ends."""
    before = results_of(project)
    yield project
    assert results_of(project) == before


def refused(run: Run, code: int = BAD_INPUT) -> str:
    """Return the sentence with which a run ended."""
    assert run.code == code
    assert is_a_sentence(run.err)
    return run.err


def is_a_sentence(err: str) -> bool:
    """Return whether the last line reads as one, in characters that do nothing to a terminal."""
    last = err.splitlines()[-1]
    printable = all(c.isprintable() or c == "\n" for c in err)
    return last.startswith("atlas: ") and "Traceback" not in err and printable


# As a process


@pytest.mark.parametrize("arguments", [["--help"], ["compute", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    code = (
        f"import atexit, sys; sys.argv = ['atlas', *{arguments}];"
        f"atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules]));"
        "from generators.cli import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert "Usage" in run.stdout
    imported = run.stdout.splitlines()[-1]
    assert imported == "[]" or (len(arguments) > 1 and imported == "['pydantic']")  # Typer reads options with it


def test_the_installed_command_exits_as_it_should(project):
    def run(*arguments):
        return subprocess.run([ATLAS, *arguments], check=False, capture_output=True, text=True)

    assert run("show", "good").returncode == 0
    wrong = run("compute", "<script>")
    assert wrong.returncode == BAD_INPUT
    assert is_a_sentence(wrong.stderr)
    assert wrong.stdout == ""


def test_a_closed_pipe_is_no_traceback(project):
    with subprocess.Popen(
        [ATLAS, "show", "good", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
        assert process.wait() == SOME_FAILED


# What it prints


def test_help_names_every_command(atlas):
    run = atlas("--help")
    assert run.code == 0
    commands = "build compute plan render report serve models show verify adopt count-tokens"
    for command in commands.split():
        assert re.search(rf"\b{command}\b", run.out)
    assert run.out.count("MODEL")


@pytest.mark.parametrize("arguments", [["compute", "--colour"], ["fly"], ["show"], ["serve", "--port", "0"]])
def test_wrong_usage_is_exit_2(atlas, arguments):
    assert atlas(*arguments).code == BAD_INPUT


def test_models_lists_names_places_and_dates(atlas, project):
    run = atlas("models")
    assert run.code == 0
    good, away = [line.split("\t") for line in run.out.splitlines()]
    assert good[:2] == ["good", "Good model"]
    assert re.fullmatch(r"computed \d{4}-\d\d-\d\d", good[3])
    assert away == ["away", "Away", "package no-such-package-here", "not computed yet", "size: none"]


def test_the_fields_of_an_entry_are_described_where_models_yml_says(atlas):
    (command,) = re.findall(r"Fields are described by `atlas ([^`]+)`", (ROOT / "models.yml").read_text("utf-8"))
    run = atlas(*command.split())
    assert run.code == 0
    described = {name: words for name, _, words in (line.split("\t") for line in run.out.splitlines())}
    assert set(described) == set(Model.model_fields)
    assert all(words.endswith(".") for words in described.values())


def test_models_of_the_repository(atlas, tmp_path):
    run = atlas("models", "--registry", ROOT / "models.yml", "--results", tmp_path)
    assert run.code == 0
    assert [line.split("\t")[0] for line in run.out.splitlines()] == [
        model.name for model in load_registry(ROOT / "models.yml").models
    ]
    assert "gpt2\tGPT-2 124M\thub openai-community/gpt2 revision 607a30d" in run.out


def test_compute_says_what_it_computed_and_then_that_it_knows(atlas, project):
    shutil.rmtree(project / "results")
    first = atlas("compute", "good")
    assert (first.code, first.out) == (0, "")
    assert re.search(r"^good: computed position_scheme, helix, channels, gains, attention", first.err, re.MULTILINE)
    second = atlas("compute", "good")
    assert second.code == 0
    assert re.search(r"^good: already stored: position_scheme, helix, channels", second.err, re.MULTILINE)


def test_one_finding_alone_is_computed_and_the_others_are_left_alone(atlas, project):
    whole = results_of(project)
    for name in ("gains", "helix"):
        (project / "results" / "good" / f"{name}.json").unlink()
    run = atlas("compute", "good", "--only", "gains")
    assert run.code == 0
    assert run.err.splitlines()[-1] == "good: computed gains"
    assert results_of(project) == {name: content for name, content in whole.items() if "helix.json" not in name}


def test_a_finding_that_the_atlas_has_not_is_a_sentence(atlas, unharmed):
    assert refused(atlas("compute", "good", "--only", "horoscope")).startswith(
        "atlas: There is no finding 'horoscope'; there are position_scheme, helix"
    )


def test_names_that_were_mistyped_are_refused_with_the_nearest(atlas, unharmed):
    said = refused(atlas("compute", "good", "--only", "gain"))
    assert said.startswith("atlas: There is no finding 'gain' (nearest: gains")
    said = refused(atlas("compute", "goood"))
    assert said.startswith("atlas: 'goood' is no model in models.yml (nearest: good)")


def test_show_tells_every_claim(atlas, project):
    run = atlas("show", "good")
    assert run.code == 0
    assert run.out.startswith(
        "Good model: gpt2, 2 layers, 2 heads, d_model 24, 64 positions, 50 tokens; from the folder"
    )
    claims = published(project).claims
    assert len(claims) > 20
    for claim in claims:
        symbol = SYMBOLS[claim.verdict]
        answer = claim.answer.replace("\N{NO-BREAK SPACE}", " ")
        assert f"\n{symbol} {claim.verdict:<8}  {claim.statement}\n            {answer}\n" in run.out


def test_show_tells_what_is_missing(atlas, project):
    write_checkpoint(project / "partial", without=("wpe.weight",))
    atlas("compute", "./partial")
    assert "helix: missing: The checkpoint lacks wpe.weight (position_embedding)." in atlas("show", "partial").out


def test_show_json_is_the_published_document(atlas, project):
    run = atlas("show", "good", "--json")
    assert run.code == 0
    assert json.loads(run.out) == published(project).model_dump(mode="json")


def test_show_takes_the_folder_that_was_computed(atlas, project):
    assert atlas("show", "./good").out == atlas("show", "good").out


def test_show_of_what_is_not_computed_says_what_to_do(atlas, project):
    assert refused(atlas("show", "away")) == "atlas: away has no results yet; compute them with: atlas compute away\n"


def test_options_can_come_from_the_environment(atlas, project, monkeypatch):
    monkeypatch.chdir("/")
    monkeypatch.setenv("ATLAS_REGISTRY", str(project / "models.yml"))
    monkeypatch.setenv("ATLAS_RESULTS", str(project / "results"))
    assert atlas("show", "good").code == 0


@pytest.mark.parametrize("how", ["option", "environment"])
def test_models_dirs_are_searched_by_name(atlas, project, monkeypatch, how):
    (project / "empty").mkdir()
    write_checkpoint(project / "weights" / "away", "bert")
    if how == "option":
        run = atlas("compute", "away", "--models-dir", "empty", "--models-dir", "weights")
    else:
        monkeypatch.setenv("ATLAS_MODELS", os.pathsep.join(["empty", "weights"]))
        run = atlas("compute", "away")
    assert run.code == 0
    assert json.loads(atlas("show", "away", "--json").out)["model"]["family"] == "bert"


def test_a_models_dir_that_is_not_there_is_bad_input(atlas, project):
    assert (
        refused(atlas("compute", "good", "--models-dir", "nowhere"))
        == "atlas: The models folder nowhere isn't there.\n"
    )


# What can't be downloaded, what fails


def test_a_named_model_that_cannot_be_had_is_exit_1(atlas, unharmed):
    run = atlas("compute", "away")
    assert run.code == SOME_FAILED
    assert run.err == "away: The package no-such-package-here isn't installed.\n"


def test_all_models_where_one_cannot_be_had_is_no_error(atlas, project):
    run = atlas("compute", "--all")
    assert run.code == 0
    assert "away: The package no-such-package-here isn't installed." in run.err


REMOTE = "- name: remote\n  title: Remote\n  group: Far\n  sources: [{hub: owner/remote}]\n"


@pytest.fixture
def remote(project, monkeypatch) -> list[str]:
    """Have a model on the hub in the registry; note what the hub is asked for."""
    asked = []

    def files(hub, source, older=False):
        asked.append(source.hub)
        raise WeightsUnavailableError("The hub is far away.")

    with (project / "models.yml").open("a") as file:
        file.write(REMOTE)
    monkeypatch.setattr("generators.checkpoint.sources.hub.Hub.files", files)
    return asked


@pytest.mark.parametrize(
    ("arguments", "is_asked"),
    [([], False), (["--all"], True), (["remote"], True), (["--group", "Far"], True), (["good"], False)],
)
def test_the_hub_is_asked_for_no_model_that_was_not_named(atlas, remote, arguments, is_asked):
    run = atlas("compute", *arguments)
    assert (remote == ["owner/remote"]) == is_asked
    assert ("remote: The hub is far away." in run.err) == is_asked
    assert run.code == (SOME_FAILED if "remote" in arguments else 0)


@pytest.mark.parametrize("arguments", [["good", "--all"], ["good", "--group", "Far"], ["--group", "Near"]])
def test_models_are_named_in_one_way(atlas, remote, arguments):
    run = atlas("compute", *arguments)
    assert run.code == BAD_INPUT
    assert "Name models, or a --group, or --all" in run.err or "There is no group 'Near'; there are: Far." in run.err


def test_the_site_comes_first_and_again_only_if_anything_was_computed(atlas, remote, monkeypatch):
    steps = []
    monkeypatch.setattr("generators.cli._make_site", lambda *_: steps.append("site") or [])
    run = atlas("build")
    assert (run.code, steps) == (0, ["site"])
    assert "2 models are not computed. What that takes isn't known now: " in run.out
    Path("results/good/gains.json").unlink()
    atlas("build")
    assert steps == ["site", "site", "site"]


def test_a_plan_says_what_models_take(atlas, remote):
    run = atlas("plan")
    good, away, far, together = (line.split("\t") for line in run.out.splitlines())
    assert good[:2] == ["good", "0 bytes"]
    assert away[1:5] == ["?", "?", "?", "The package no-such-package-here isn't installed."]
    assert far[1:6] == ["?", "?", "?", "The hub is far away.", "not computed yet"]
    assert together[0].endswith("not counting 2 that can't be downloaded.")


def test_results_of_ones_own_lie_over_the_tracked_ones_until_they_are_adopted(atlas, project, monkeypatch):
    whole = results_of(project)
    (project / "results" / "good" / "gains.json").unlink()
    monkeypatch.delenv("ATLAS_RESULTS")
    tracked = results_of(project)
    assert "good: computed gains" in atlas("compute", "good").err
    assert {name: data for name, data in results_of(project).items() if "local" not in name} == tracked
    assert (project / "results" / "local" / "good" / "gains.json").is_file()
    assert atlas("verify").code == 0
    assert "gains: missing" not in atlas("show", "good").out
    assert atlas("adopt").out == "Moved from results/local/ to results/: good/gains\n"
    assert {name: data for name, data in results_of(project).items() if "/." not in name} == {
        name: data for name, data in whole.items() if "/." not in name
    }


def test_stored_results_stand_in_for_weights_that_cannot_be_had(atlas, unharmed):
    (unharmed / "models.yml").write_text(
        (unharmed / "models.yml").read_text().replace("folder: good", "package: gone")
    )
    run = atlas("compute", "good")
    assert run.code == 0
    assert run.err == "good: The package gone isn't installed. Its stored results stay.\n"


def test_a_finding_that_fails_is_exit_1_and_the_rest_is_done(atlas, project, monkeypatch):
    def breaking(inputs):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("generators.findings.FINDINGS", (toy("broken", measure=breaking), toy("whole")))
    write_checkpoint(project / "other")
    run = atlas("compute", "./other")
    assert run.code == SOME_FAILED
    assert "atlas: other: broken failed: ZeroDivisionError: a bug\n" in run.err
    assert "other: computed whole\n" in run.err


def test_a_full_disk_is_a_sentence_and_exit_1(atlas, unharmed, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    write_checkpoint(unharmed / "other")
    monkeypatch.setattr(Path, "write_bytes", full)
    assert "No space left on device" in refused(atlas("compute", "./other"), SOME_FAILED)


def test_a_bad_model_does_not_keep_the_others_from_being_computed(atlas, project):
    shutil.rmtree(project / "results")
    (project / "broken").mkdir()
    run = atlas("compute", "./broken", "good")
    assert run.code == BAD_INPUT
    assert "atlas: broken: The checkpoint broken has no config.json.\n" in run.err
    assert "good: computed position_scheme, helix" in run.err
    assert atlas("show", "good").code == 0


def test_a_bad_model_among_all_is_exit_1(atlas, project):
    (project / "good" / WEIGHTS).write_bytes(b"")
    shutil.rmtree(project / "results")
    run = atlas("compute")
    assert run.code == SOME_FAILED
    assert run.err.splitlines()[-1].startswith("atlas: good: ")
    assert is_a_sentence(run.err)


# Bad input: checkpoints


class Evil:
    """Whoever unpickles this makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def header(change: Callable[[dict], object]) -> Callable[[Path], None]:
    return lambda folder: edit_header(folder / WEIGHTS, change)


def config(content: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        if isinstance(content, str | bytes):
            (folder / "config.json").write_bytes(content if isinstance(content, bytes) else content.encode())
        else:
            write_json(folder / "config.json", content)

    return write


def sizes(**changed: object) -> Callable[[Path], None]:
    return config({**config_of("gpt2"), **changed})


def tensor(name: str, values: np.ndarray) -> Callable[[Path], None]:
    return lambda folder: write_checkpoint(folder, changed={name: values}, dtype=None)


def spoiled(name: str, value: float) -> Callable[[Path], None]:
    values = tensors_of("gpt2")[name].copy()
    values.flat[-1] = value
    return tensor(name, values)


def header_length(length: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + content[8:])

    return write


def cut(keep: Callable[[int], int]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[: keep(len(content))])

    return write


def weight_map(content: object) -> Callable[[Path], None]:
    return lambda folder: write_json(folder / f"{WEIGHTS}.index.json", {"weight_map": content})


def only_pickle(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(folder / "unpickled")))


def pickle_named_safetensors(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(pickle.dumps(Evil(folder / "unpickled")))


def shard_is_pickle(folder: Path) -> None:
    only_pickle(folder)
    weight_map({"wpe.weight": "pytorch_model.bin"})(folder)


def overlapping(entries: dict) -> None:
    entries["wpe.weight"]["data_offsets"] = entries["wte.weight"]["data_offsets"]


def past_the_end(entries: dict) -> None:
    start, end = entries["wte.weight"]["data_offsets"]
    entries["wte.weight"]["data_offsets"] = [start, end + 10**12]


def backwards(entries: dict) -> None:
    entries["wpe.weight"]["data_offsets"].reverse()


def directory(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).mkdir()


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


WIDTH, POSITIONS = 24, 64
NOT_WHOLE = "isn't a whole safetensors file"
BROKEN = {
    "truncated-data": (cut(lambda length: length - 100), NOT_WHOLE),
    "truncated-header": (cut(lambda length: 100), NOT_WHOLE),
    "truncated-length": (cut(lambda length: 5), NOT_WHOLE),
    "no-bytes": (cut(lambda length: 0), NOT_WHOLE),
    "offset-past-end": (header(past_the_end), NOT_WHOLE),
    "offsets-overlap": (header(overlapping), NOT_WHOLE),
    "offsets-backwards": (header(backwards), NOT_WHOLE),
    "offsets-negative": (header(lambda h: h["wpe.weight"].update(data_offsets=[-8, 10])), NOT_WHOLE),
    "shape-not-its-bytes": (header(lambda h: h["wpe.weight"].update(shape=[POSITIONS, WIDTH + 1])), NOT_WHOLE),
    "shape-overflows": (header(lambda h: h["wpe.weight"].update(shape=[2**40, 2**40])), NOT_WHOLE),
    "dtype-unheard-of": (header(lambda h: h["wpe.weight"].update(dtype="Q7")), NOT_WHOLE),
    "header-huge": (header_length(2**62), NOT_WHOLE),
    "header-past-end": (header_length(10**7), NOT_WHOLE),
    "header-zero": (header_length(0), NOT_WHOLE),
    "header-no-json": (lambda folder: (folder / WEIGHTS).write_bytes(struct.pack("<Q", 4) + b"[[[["), NOT_WHOLE),
    "header-empty": (
        lambda folder: (folder / WEIGHTS).write_bytes(struct.pack("<Q", 2) + b"{}"),
        "has no tensor of the family 'gpt2'; it begins with none at all",
    ),
    "nan": (spoiled("wpe.weight", np.nan), "wpe.weight in the checkpoint broken holds NaN or infinity"),
    "infinity": (spoiled("h.1.ln_2.weight", -np.inf), "h.1.ln_2.weight in the checkpoint broken holds NaN or inf"),
    "positions-too-wide": (
        tensor("wpe.weight", np.zeros((POSITIONS, WIDTH + 1), np.float32)),
        "wpe.weight in the checkpoint broken, the position_embedding, has the shape 64 x 25 where config.json "
        "asks for 64 x 24",
    ),
    "positions-transposed": (tensor("wpe.weight", np.zeros((WIDTH, POSITIONS), np.float32)), "the shape 24 x 64"),
    "a-single-number": (tensor("h.0.ln_1.weight", np.float32(1.0)), "the shape of a single number"),
    "integers": (tensor("wpe.weight", np.ones((POSITIONS, WIDTH), np.int32)), "is I32; the atlas reads F64, F32"),
    "no-config": (lambda folder: (folder / "config.json").unlink(), "The checkpoint broken has no config.json"),
    "config-not-json": (config("model_type: gpt2"), "config.json isn't valid JSON"),
    "config-empty": (config(""), "config.json isn't valid JSON"),
    "config-binary": (config(b"\x80\x04\x95"), "config.json can't be read"),
    "config-a-list": (config([config_of("gpt2")]), "must hold a JSON object, not list"),
    "config-deep": (config("[" * 200_000 + "]" * 200_000), "config.json isn't valid JSON"),
    "config-deep-object": (config('{"a":' * 100_000), "config.json isn't valid JSON"),
    "config-a-string": (config('"gpt2"'), "must hold a JSON object, not str"),
    "config-endless-number": (config('{"n_embd": ' + "1" * 10_000 + "}"), "config.json isn't valid JSON"),
    "strings-for-numbers": (sizes(n_embd="24"), "config.json gives '24' as n_embd"),
    "size-absent": (sizes(n_positions=None), "config.json gives None as n_positions"),
    "family-unknown": (
        sizes(model_type="mamba", vocab_size=None),
        "family 'mamba' is unknown; the atlas knows gpt2, openai-gpt, bert",
    ),
    "family-a-list": (sizes(model_type=["gpt2"]), "is unknown; the atlas knows gpt2"),
    "family-with-escapes": (sizes(model_type="\x1b[31m\x07"), "is unknown; the atlas knows gpt2"),
    "other-family": (config(config_of("bert")), "has no tensor of the family 'bert'"),
    "empty-folder": (empty, "The checkpoint broken has no config.json"),
    "no-weights": (lambda folder: (folder / WEIGHTS).unlink(), "has no model.safetensors"),
    "only-pickle": (only_pickle, "pytorch_model.bin is"),
    "pickle-in-disguise": (pickle_named_safetensors, NOT_WHOLE),
    "shard-is-pickle": (shard_is_pickle, "pytorch_model.bin isn't a whole safetensors file"),
    "directory": (directory, "has no model.safetensors"),
    "index-not-json": (
        lambda folder: (folder / f"{WEIGHTS}.index.json").write_text("{"),
        "model.safetensors.index.json isn't valid JSON",
    ),
    "index-without-map": (lambda folder: write_json(folder / f"{WEIGHTS}.index.json", {}), "has no weight_map"),
    "map-a-list": (weight_map(["wpe.weight"]), "has no weight_map"),
    "map-leaves-the-folder": (weight_map({"wpe.weight": "../../etc/passwd"}), "has no weight_map"),
    "map-to-root": (weight_map({"wpe.weight": "/etc/passwd"}), "has no weight_map"),
    "map-to-parent": (weight_map({"wpe.weight": ".."}), "has no .."),
    "map-to-nothing": (weight_map({"wpe.weight": "model-1-of-2.safetensors"}), "has no model-1-of-2.safetensors"),
    "map-to-endless-name": (weight_map({"wpe.weight": "x" * 5000}), "can't be read: File name too long"),
    "map-with-nul": (weight_map({"wpe.weight": "a\0b"}), "broken has no a"),
    "map-to-numbers": (weight_map({"wpe.weight": 3}), "has no weight_map"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_checkpoint_is_a_sentence_that_costs_nothing_else(atlas, unharmed, broken):
    harm, said = BROKEN[broken]
    folder = write_checkpoint(unharmed / "broken")
    harm(folder)
    run = atlas("compute", "./broken")
    err = refused(run)
    assert err.startswith("atlas: broken: ")
    assert said in err
    assert run.out == ""
    assert not (folder / "unpickled").exists()


def test_pickle_would_have_run(tmp_path):
    """The trap of the tests above works."""
    only_pickle(write_checkpoint(tmp_path))
    pickle.loads((tmp_path / "pytorch_model.bin").read_bytes())
    assert (tmp_path / "unpickled").exists()


def test_a_tensor_that_its_shard_lacks_is_a_sentence(atlas, project):
    folder = write_checkpoint(project / "broken")
    weight_map(dict.fromkeys([*read_safetensors(folder / WEIGHTS)[0], "h.1.ln_2.weight"], WEIGHTS))(folder)
    edit_header(folder / WEIGHTS, lambda h: h.update({"h.1.ln_9.weight": h.pop("h.1.ln_2.weight")}))
    assert "h.1.ln_2.weight can't be read from" in refused(atlas("compute", "./broken"))


@contextmanager
def without_root() -> Iterator[None]:
    """Give up the right to read anything, if this process has it."""
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


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
    spoiled("wpe.weight", np.nan)(unharmed / "good")
    run = atlas("compute", "good")
    assert run.code == BAD_INPUT


# Bad input: names and the registry


@pytest.mark.parametrize(
    "name",
    [
        "../nowhere",
        "../../etc/passwd",
        "/etc/passwd",
        "<script>alert(1)</script>",
        "a\x1b[31mb",
        "a\nb\r\x07",
        "a\x00b",
        "",
        " ",
        "x" * 5000,
        "own--er/model",
        "\udcff",
    ],
    ids=ascii,
)
@pytest.mark.parametrize("command", ["compute", "show"])
def test_a_name_that_is_no_model_is_a_sentence(atlas, unharmed, command, name):
    run = atlas(command, name)
    assert refused(run)
    assert run.out == ""
    assert sorted(path.name for path in unharmed.iterdir()) == ["good", "models.yml", "results"]


def test_a_wrong_name_among_right_ones_stops_before_anything_is_computed(atlas, project):
    shutil.rmtree(project / "results")
    assert atlas("compute", "good", "nonsense").code == BAD_INPUT
    assert not (project / "results").exists()


def test_a_folder_with_a_hostile_name_becomes_a_slug(atlas, project):
    write_checkpoint(project / "<img src=x onerror=alert(1)>")
    assert atlas("compute", "./<img src=x onerror=alert(1)>").code == 0
    assert sorted(path.name for path in (project / "results").iterdir()) == ["good", "img-src-x-onerror-alert-1"]


def test_a_folder_whose_name_is_no_text_can_be_computed(atlas, project):
    name = os.fsdecode(b"model-\xff")
    write_checkpoint(project / name)
    run = atlas("compute", f"./{name}")
    assert run.code == 0
    assert json.loads(atlas("show", "model", "--json").out)["model"]["source"]["place"] == "model-\ufffd"


BROKEN_REGISTRIES = {"absent": None, "yaml": b"- [", "binary": b"\xff", "entry": b"- name: ../x\n  title: x"}
NAMED = (["compute", "good"], ["show", "away"])  # may be a folder or a hub id, which need no registry


@pytest.mark.parametrize(
    ("command", "content"),
    [
        *((command, content) for command in (["compute"], ["models"]) for content in BROKEN_REGISTRIES.values()),
        *((command, content) for command in NAMED for content in BROKEN_REGISTRIES.values() if content is not None),
    ],
)
def test_a_broken_registry_is_a_sentence(atlas, unharmed, command, content):
    (unharmed / "models.yml").unlink()
    if content is not None:
        (unharmed / "models.yml").write_bytes(content)
    assert refused(atlas(*command)).startswith("atlas: The registry models.yml ")


def test_a_folder_needs_no_registry_unless_one_is_named(atlas, project):
    (project / "models.yml").unlink()
    shutil.move(project / "good", project / "own")
    assert atlas("compute", "./own", "--skip-runs", "--only", "gains").code == 0
    assert published(project, "own").findings["gains"].status == "computed"
    before = results_of(project)
    assert "The registry other.yml can't be read" in refused(atlas("compute", "./own", "--registry", "other.yml"))
    assert "'nothing' is no model in models.yml, no folder" in refused(atlas("compute", "nothing"))
    assert results_of(project) == before


# A family that is named, and a hub that may not be asked


def test_a_type_without_a_table_is_read_by_the_one_that_is_named(atlas, project):
    write_checkpoint(project / "strange", config={"model_type": "gpt2_of_mine"})
    assert atlas("compute", "./strange", "--skip-runs").code == 0
    plain = published(project, "strange")
    assert plain.model.family == "gpt2_of_mine (read without a table)"
    assert plain.findings["gains"].status == "not_applicable"
    assert "no table for models of type gpt2_of_mine" in (plain.findings["gains"].reason or "")
    assert atlas("compute", "./strange", "--family", "gpt2", "--skip-runs").code == 0
    named = published(project, "strange")
    assert named.model.family == "gpt2"
    assert named.findings["gains"].metrics == published(project).findings["gains"].metrics


def test_a_family_that_does_not_fit_is_a_sentence(atlas, unharmed):
    for family, said in [
        ("bert", "gives None as num_hidden_layers"),
        ("gpt", "There is no family 'gpt' (nearest: gpt2, "),
    ]:
        run = atlas("compute", "./good", "--family", family)
        assert run.code == BAD_INPUT
        assert is_a_sentence(run.err)
        assert said in run.err
    for models in ([], ["./good", "away"]):
        assert "--family goes with exactly one MODEL" in refused(atlas("compute", *models, "--family", "gpt2"))


@pytest.mark.parametrize("command", ["compute", "build", "report", "count-tokens"])
def test_offline_the_hub_is_not_asked(atlas, project, monkeypatch, command):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: pytest.fail("the hub was asked"))
    for work in ("make_pages", "run_mkdocs"):
        monkeypatch.setattr(
            f"generators.site.build.{work}",
            lambda *_, **__: SimpleNamespace(rendered=NOTHING, failures=[], sentences=[]),
        )
    (project / "text.txt").write_text("a text")
    texts = ["text.txt"] if command == "count-tokens" else []
    run = atlas(command, "owner/never-read", *texts, "--offline")
    assert run.code == SOME_FAILED
    assert "The model hub can't be reached and owner/never-read isn't in its local cache." in run.err
    assert "Traceback" not in run.err


HARM = [b"", b"{}", b"{\xff", b"[" * 100_000]


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_finding_is_a_sentence_and_computed_anew(atlas, project, harm):
    whole = results_of(project)
    (project / "results" / "good" / "helix.json").write_bytes(harm)
    shown = atlas("show", "good")
    assert shown.code == SOME_FAILED
    assert is_a_sentence(shown.err)
    assert "helix.json are damaged" in shown.err
    assert "helix: missing: The stored results" in shown.out
    assert "The first norm dials positions down." in shown.out  # the other findings are shown
    assert atlas("models").code == 0
    again = atlas("compute", "good")
    assert again.code == 0
    assert "good: helix is computed again: The stored results" in again.err
    assert re.search(r"^good: computed helix; already stored: ", again.err, re.MULTILINE)
    assert results_of(project) == whole


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_header_is_a_sentence_and_written_anew(atlas, project, harm):
    whole = results_of(project)
    (project / "results" / "good" / "model.json").write_bytes(harm)
    shown = atlas("show", "good")
    assert shown.code == BAD_INPUT
    assert is_a_sentence(shown.err)
    listed = atlas("models")
    assert listed.code == 0
    assert listed.out.splitlines()[0].split("\t")[3] == "damaged"
    assert atlas("compute", "good").code == 0
    assert results_of(project) == whole


def test_results_that_cannot_be_written_are_a_sentence(atlas, project):
    (project / "taken").write_text("a file, not a folder")
    refused(atlas("compute", "good", "--results", "taken"), SOME_FAILED)


@pytest.mark.parametrize("command", ["compute", "build", "report"])
@pytest.mark.parametrize("option", [("--budget", "0"), ("--budget", "-3"), ("--device", "abacus")], ids=" ".join)
def test_how_models_cannot_be_run_is_a_sentence_and_nothing_is_touched(atlas, unharmed, command, option):
    err = refused(atlas(command, "good", *option))
    assert option[0] in err or option[1] in err


# A report on one model; tests/site/test_report.py looks at it


@pytest.fixture
def nothing_made(monkeypatch) -> None:
    """Have no report made: bad input is found before anything is."""
    from generators.site import report

    for work in ("compute_model", "make_pages", "run_mkdocs"):
        monkeypatch.setattr(report, work, lambda *_, **__: pytest.fail("something was made"))


@pytest.mark.parametrize("model", ["nonsense", "./nowhere", "<script>"])
def test_a_report_on_what_is_no_model_is_a_sentence(atlas, project, nothing_made, model):
    refused(atlas("report", model))
    assert not (project / "report").exists()


@pytest.mark.parametrize("harm", ["no-config", "nan", "truncated-data"])
def test_a_report_on_a_broken_checkpoint_is_a_sentence_and_the_old_report_stays(atlas, project, harm):
    write_checkpoint(project / "broken")
    (project / "report").mkdir()
    (project / "report" / "index.html").write_text("the old report")
    BROKEN[harm][0](project / "broken")
    refused(atlas("report", "./broken"))
    assert [(path.name, path.read_text()) for path in (project / "report").iterdir()] == [
        ("index.html", "the old report")
    ]


@pytest.mark.parametrize("taken", ["file", "folder"])
def test_a_report_takes_the_place_of_nothing_else(atlas, project, nothing_made, taken):
    place = project / "my-thesis"
    if taken == "folder":
        place.mkdir()
        (place / "chapter-1.txt").write_text("years of work")
    else:
        place.write_text("years of work")
    assert (
        refused(atlas("report", "./good", "--output", "my-thesis"))
        == "atlas: my-thesis is there and is no report; name another place with --output.\n"
    )
    assert (place / "chapter-1.txt" if taken == "folder" else place).read_text() == "years of work"


@pytest.fixture
def only_computed(monkeypatch) -> list[tuple[Registry, Path]]:
    """Have two findings computed, of which one breaks, and nothing drawn; note what would be made into pages."""
    from generators.site import report
    from generators.site.build import Made
    from generators.site.pages import Rendered

    noted: list[tuple[Registry, Path]] = []

    def breaking(inputs):
        raise ZeroDivisionError("a bug")

    def make_pages(registry, store, *_, **__):
        assert store.finding("good", "whole").status == "computed"
        noted.append((registry, store.root))
        return Made(Rendered([], [], ["A figure is damaged."]), [])

    monkeypatch.setattr(all_findings, "FINDINGS", (toy("broken", measure=breaking), toy("whole")))
    monkeypatch.setattr(report, "make_pages", make_pages)
    monkeypatch.setattr(report, "run_mkdocs", lambda *_, **__: None)
    return noted


def test_a_report_that_lacks_something_says_so_and_is_exit_1(atlas, project, only_computed):
    run = atlas("report", "./good", "--output", "there")
    assert run.code == SOME_FAILED
    assert "atlas: broken failed: ZeroDivisionError: a bug\natlas: A figure is damaged.\n" in run.err
    assert run.out == "The report is in there/; open there/index.html in a browser.\n"


def test_a_report_needs_no_registry_and_keeps_its_results_to_itself(atlas, unharmed, only_computed):
    (unharmed / "models.yml").unlink()
    assert "report/" in atlas("report", "./good").out
    ((registry, root),) = only_computed
    assert [model.name for model in registry.models] == ["good"]
    assert root == Path("report") / ".results"
    assert sorted(path.name for path in (root / "good").glob("*.json")) == ["broken.json", "model.json", "whole.json"]


# Are results what was stored?


def flipped(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])


def the_arrays_of(project: Path, finding: str) -> Path:
    (path,) = (project / "results" / "good").glob(f"{finding}.*.npz")
    return path


def test_verify_says_that_results_are_what_was_stored(atlas, unharmed):
    run = atlas("verify")
    assert (run.code, run.out, run.err) == (0, "All results in results/ are intact.\n", "")


def test_verify_names_everything_that_is_wrong(atlas, project):
    shutil.copytree(project / "results" / "good", project / "results" / "headless")
    (project / "results" / "headless" / "model.json").unlink()
    helix, gains, model = (project / "results" / "good" / f"{name}.json" for name in ("helix", "gains", "model"))
    helix.write_text(helix.read_text().replace('"status": "computed"', '"status": "missing"'))
    flipped(the_arrays_of(project, "channels"))
    the_arrays_of(project, "attention").unlink()
    gains.write_bytes(gains.read_bytes()[:100])
    model.write_text(model.read_text().replace("Good model", "Better model"))
    run = atlas("verify")
    assert (run.code, run.out) == (SOME_FAILED, "")
    lines = sorted(run.err.splitlines())
    assert all(is_a_sentence(line) for line in lines)
    wrong = [
        "The stored arrays results/good/attention.*.npz can't be read: No such file or directory.",
        "The stored arrays results/good/channels.*.npz are damaged: their digest is another one.",
        "The stored results results/good/gains.json are damaged: they aren't JSON.",
        "The stored results results/good/helix.json are damaged: their digest is another one.",
        "The stored results results/good/model.json are damaged: their digest is another one.",
        "results/headless has results but does not say of which model.",
    ]
    assert [re.sub(r"\.[0-9a-f]{16}\.npz", ".*.npz", line).removeprefix("atlas: ") for line in lines] == wrong


# The better of two folders of results


@pytest.fixture
def other(project) -> Path:
    """Return a copy of the results, as another folder of them."""
    return shutil.copytree(project / "results", project / "other")


def test_adopt_takes_over_what_is_missing_or_damaged(atlas, project, other):
    whole = results_of(project)
    (project / "results" / "good" / "gains.json").unlink()
    flipped(the_arrays_of(project, "helix"))
    run = atlas("adopt", "other")
    assert (run.code, run.out, run.err) == (0, "Copied from other/: good/gains, good/helix\n", "")
    assert results_of(project) == whole
    assert atlas("verify").code == 0


@pytest.mark.parametrize("place", ["results", "nowhere"])
def test_adopt_of_nothing_better_changes_nothing(atlas, unharmed, place):
    run = atlas("adopt", place)
    assert (run.code, run.out) == (0, f"Copied from {place}/: nothing\n")
