"""Vocabulary rows: which rows of the token embedding are zeros, identical to another, or without a token."""

from generators.findings.contract import finding_of
from generators.findings.inputs import TOKENS
from generators.findings.vocabulary_rows import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=("token_embedding",),
    uses=(TOKENS,),
    signature="vocabulary-strip",
)
