"""Counts of a corpus that the user names decide the frequency finding, and are part of what its key is made from."""

from pathlib import Path

import numpy as np

from generators.cli import BAD_INPUT
from generators.compute.records import StoredFinding
from generators.compute.results import Store
from tests.checkpoints import Sizes, write_checkpoint

ENOUGH = Sizes(vocab_size=160)  # tokens to say something of


def stored(results: Path) -> dict[str, StoredFinding | None]:
    return {finding: Store(results).finding("model", finding) for finding in ("frequency", "helix")}


def test_counts_of_a_corpus_come_before_the_index(tmp_path, atlas):
    write_checkpoint(tmp_path / "model", sizes=ENOUGH)
    np.save(tmp_path / "counts.npy", np.arange(ENOUGH.vocab_size, dtype=np.int64))
    results = ["--results", str(tmp_path / "results")]
    assert atlas("compute", str(tmp_path / "model"), *results).code == 0
    before = stored(tmp_path / "results")
    assert before["frequency"].metrics["source"] == "index"
    run = atlas("compute", str(tmp_path / "model"), "--counts", str(tmp_path / "counts.npy"), *results)
    assert run.code == 0
    after = stored(tmp_path / "results")
    assert after["frequency"].metrics["source"] == "corpus"
    assert after["frequency"].key != before["frequency"].key
    assert after["helix"].key == before["helix"].key


def test_counts_that_are_not_there_or_of_no_one_model_are_refused(tmp_path, atlas):
    write_checkpoint(tmp_path / "model")
    results = ["--results", str(tmp_path / "results")]
    assert atlas("compute", str(tmp_path / "model"), "--counts", str(tmp_path / "no.npy"), *results).code == BAD_INPUT
    assert atlas("compute", "--counts", str(tmp_path / "no.npy"), *results).code == BAD_INPUT
