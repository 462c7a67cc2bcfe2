"""The spectra of all matrices of a model by WeightWatcher, one thread. Run by an environment of its own:

python tests/benchmark/with_weightwatcher.py MODEL_FOLDER ANSWERS.npz

Its `get_ESD` looks at all layers anew for each one; what is timed here is the part of it that computes a spectrum.
"""

import sys
import time

import numpy as np
import torch
import transformers
import weightwatcher
from weightwatcher.constants import DEFAULT_PARAMS


def main() -> None:
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
    watcher = weightwatcher.WeightWatcher(model=model)
    watcher.set_model_(model)
    params = DEFAULT_PARAMS.copy()
    seconds, spectra = [], {}
    layers = watcher.make_layer_iterator(model=model, layers=[], params=params)
    for layer in layers:
        if layer.skipped or not layer.has_weights:
            continue
        began = time.process_time()
        watcher.apply_esd(layer, params)
        seconds.append(time.process_time() - began)
        spectra[layer.longname or layer.name] = np.sort(np.asarray(layer.evals))[::-1]
    np.savez(sys.argv[2], version=weightwatcher.__version__, seconds=seconds, **spectra)


if __name__ == "__main__":
    main()
