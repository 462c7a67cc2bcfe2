"""`stdlib-gpt2`: the model whose token counts are known."""
