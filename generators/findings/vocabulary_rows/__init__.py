"""Vocabulary rows: which rows of the token embedding are zeros, identical to another, or without a token."""

from generators.findings.contract import Finding
from generators.findings.inputs import TOKENS
from generators.findings.vocabulary_rows import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="vocabulary_rows",
    words=words_of(__name__),
    needs=("token_embedding",),
    uses=(TOKENS,),
    metrics=measure.VocabularyRowsMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="vocabulary-strip",
)
