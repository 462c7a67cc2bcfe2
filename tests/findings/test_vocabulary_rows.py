import numpy as np
import pytest

from generators.findings.token_cells import reserved_names
from generators.findings.vocabulary_rows import FINDING
from generators.findings.vocabulary_rows.measure import KINDS
from generators.maths.blocks import first_identical
from generators.tokens.vocabulary import Token, assemble
from tests import synthetic

V, D = 3000, 24
ZEROS, TWINS, TRIPLETS = [5, 900], [7, 1600], [100, 101, 2999]
NAMES = [
    "[unused7]", "<unused0>", "madeupword0001", "<|reserved_special_token_5|>", "<|vision_reserved_special_token_7|>",
    "<reserved_106>", "<|extra_204|>", "<|dummy_83|>", "<|placeholder3|>", "<SPECIAL_20>", "[control_8]",
    "[UNUSED_TOKEN_145]", ">>UNUSED_221<<", "<|unused_1|>", "<\uff5cplace\u2581holder\u2581no\u25817\uff5c>",
]  # fmt: skip
NOT_NAMES = ["unused", "<unused>", "reserved", "<s>", "[MASK]", "<extra_id_0>", "<|im_start|>", "a <unused1>"]


def rows(seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal((V, D)).astype(dtype)


def planted(dtype=np.float32):
    E = rows(1, dtype)
    E[ZEROS] = 0
    for those in (TWINS, TRIPLETS):
        E[those] = E[those[0]]
    return E


def compute(E, vocabulary=None):
    arch = synthetic.architecture(d_model=E.shape[1], vocab_size=len(E))
    return synthetic.measure(FINDING, {"token_embedding": E}, arch, vocabulary)


def the_claim(result):
    (claim,) = FINDING.claims(result)
    return claim


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planted_rows_are_found_and_no_others(dtype):
    result = compute(planted(dtype))
    m = result.metrics
    assert m == {"rows": V, "zeros": 2, "identical": 5, "vectors": 2, "no_token": None, "reserved": None}
    assert {row["id"]: (row["kind"], row["same_as"]) for row in result.tables["rows"].named()} == {
        **dict.fromkeys(ZEROS, ("zeros", 5)),
        **dict.fromkeys(TWINS, ("identical to another", 7)),
        **dict.fromkeys(TRIPLETS, ("identical to another", 100)),
    }
    assert [(row["id"], row["rows"]) for row in result.tables["groups"].named()] == [(100, 3), (7, 2)]
    assert (the_claim(result).verdict, the_claim(result).value) == ("holds", 7 / V)


def test_noise_has_no_equal_rows_even_where_it_is_rounded():
    result = compute(np.round(rows() * 32).astype(np.float32))
    assert (result.metrics["identical"], result.tables, the_claim(result).value) == (0, {}, 0)


def test_rows_differ_by_one_bit_and_by_the_sign_of_zero():
    E = rows(3)
    E[1] = E[0]
    E[1, 9] = np.nextafter(E[0, 9], np.float32(np.inf))
    E[2], E[3] = 0, -0.0
    m = compute(E).metrics
    assert (m["identical"], m["zeros"]) == (0, 2)


def test_tokenizer_and_names_are_counted_apart():
    names = [f"w{i}" for i in range(7)] + ["<unused1>", "<unused2>"] + [f"w{i}" for i in range(9, V - 100)]
    tokens = {i: Token(text.encode(), text, marks_space=True) for i, text in enumerate(names)}
    result = compute(planted(), assemble(tokens, V))
    assert result.metrics["reserved"] == {"rows": 2, "shared": 1}
    assert result.metrics["no_token"] == {"rows": 100, "shared": 1}
    counts = np.bincount(result.arrays["kinds"])
    assert dict(zip(KINDS, counts.tolist(), strict=True)) == {
        "other": V - 1 - 99 - 5 - 2,
        "reserved name": 1,
        "no token": 99,
        "identical to another": 5,
        "zeros": 2,
    }
    answer = the_claim(result).answer.replace("\N{NO-BREAK SPACE}", " ")
    assert "100 rows have no token in the tokenizer's file; 1 of them is zeros or identical to another" in answer
    assert "2 rows have a reserved name; 1 of them is zeros or identical to another" in answer


def test_which_names_are_reserved():
    names = synthetic.vocabulary(len(NAMES + NOT_NAMES), dict(enumerate(NAMES + NOT_NAMES)))
    assert reserved_names(names) == set(range(len(NAMES)))


def test_first_identical_agrees_with_bytes():
    E = np.random.default_rng(4).integers(0, 2, (2000, 8)).astype(np.float32)
    first: dict[bytes, int] = {}
    assert first_identical(E).tolist() == [first.setdefault(row.tobytes(), i) for i, row in enumerate(E)]
    assert first_identical(np.asfortranarray(E)).tolist() == first_identical(E).tolist()
