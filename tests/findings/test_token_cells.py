"""What tables and sentences call tokens."""

import numpy as np
import pytest

from generators.findings.measured import table_of
from generators.findings.token_cells import COLUMNS, TokenCells, cells, name, names
from generators.tokens.readable import readable_form
from generators.tokens.vocabulary import Token, assemble

TEXTS = (b" the", b"\xff\xfe", b"<b>", "漢".encode())


@pytest.fixture(scope="module")
def vocabulary():
    return assemble(
        {i: Token(t, readable_form(t), t.startswith(b" "), False) for i, t in enumerate(TEXTS)}, len(TEXTS)
    )


def test_cells_stand_under_their_columns(vocabulary):
    assert COLUMNS == ("id", "readable", "raw_bytes")
    assert tuple(cells(vocabulary, 0)) == tuple(cells(None, 0)) == COLUMNS
    table = table_of("tokens", COLUMNS, [cells(vocabulary, i) for i in range(2)])
    assert table.rows == ((0, "␠the", "20 74 68 65"), (1, vocabulary.readable[1], "ff fe"))


def test_without_a_vocabulary_only_the_id_is_known():
    assert cells(None, 7) == {"id": 7, "readable": None, "raw_bytes": None}
    assert names(None, np.arange(3)) == {}


def test_rows_about_tokens_begin_with_their_cells():
    class Row(TokenCells):
        group: str

    assert tuple(Row.__annotations__) == (*COLUMNS, "group")


def test_a_sentence_calls_a_token_by_its_readable_form_or_its_id(vocabulary):
    assert name(0, vocabulary.readable[0]) == "␠the"
    assert name(7, None) == "#7"
    assert name(3, "") == ""


def test_names_as_an_array(vocabulary):
    (array,) = names(vocabulary, np.array([3, 0])).values()
    assert array.tolist() == ["漢", "␠the"]
    assert array.dtype.kind == "U"
    assert list(names(vocabulary, np.array([1]), "best_name")) == ["best_name"]
