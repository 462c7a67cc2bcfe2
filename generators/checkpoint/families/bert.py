"""BERT: an encoder that normalises after adding; attention of the first block reads the embeddings' own norm."""

from generators.checkpoint.config import Settings
from generators.checkpoint.roles import Family, Slot, changed, linear, norm


def _as_set(family: Family, settings: Settings) -> Family:
    """Return the table for an encoder, or for one whose words see only those before them."""
    settings.must_be("position_embedding_type", "absolute")
    return changed(family, causal=settings.flag("is_decoder"))


BERT = Family(
    name="bert",
    model_types=("bert",),
    prefixes=("", "bert."),
    config={
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "d_model": "hidden_size",
        "n_ctx": "max_position_embeddings",
        "vocab_size": "vocab_size",
        "norm_eps": "layer_norm_eps",
    },
    slots={
        "position_embedding": Slot("embeddings.position_embeddings.weight", "n d"),
        "token_embedding": Slot("embeddings.word_embeddings.weight", "V d"),
    },
    block_slots={
        **norm("ln1", "encoder.layer.{j}.output.LayerNorm"),
        **norm("ln2", "encoder.layer.{i}.attention.output.LayerNorm"),
        **linear("attn.q", "encoder.layer.{i}.attention.self.query"),
        **linear("attn.k", "encoder.layer.{i}.attention.self.key"),
        **linear("attn.v", "encoder.layer.{i}.attention.self.value"),
        **linear("attn.o", "encoder.layer.{i}.attention.output.dense"),
        **linear("mlp.in", "encoder.layer.{i}.intermediate.dense"),
        **linear("mlp.out", "encoder.layer.{i}.output.dense"),
    },
    first_block_slots=norm("ln1", "embeddings.LayerNorm"),
    aliases=(("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),
    defaults={"position_embedding_type": "absolute"},
    causal=False,
    post_norm=True,
    variant=_as_set,
)

FAMILIES = (BERT,)
