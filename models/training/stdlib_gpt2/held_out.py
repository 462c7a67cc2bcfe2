"""Write held_out_tokens.npy: the files held out of the model's training as token ids, an end-of-text after each.

Another release of Python has other files, so the ids are stored and not made anew. `SHA256` is that of the ids, as
`generators.runner.texts.digest_of_ids` takes it.
"""

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from models.training.corpus import encode, read_library

HERE = Path(__file__).resolve().parents[2] / "stdlib-gpt2"
FILE = HERE / "held_out_tokens.npy"
SHA256 = "3c1ac24291c220bf85dc41952aed5418ce1496562d9abbcf8652ec166e2e7689"


def held_out_tokens() -> np.ndarray:
    """The ids, uint16 (n_tokens,), from the library of the Python that runs this."""
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
    return encode(read_library().held_out, tokenizer).astype(np.uint16)


if __name__ == "__main__":
    np.save(FILE, held_out_tokens())
