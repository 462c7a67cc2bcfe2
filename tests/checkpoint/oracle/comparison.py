"""What a family's table says, compared with what a model of that family does inside."""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.roles import Slot
from generators.checkpoint.sources import in_folder
from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.model import Trace, build, run
from tests.checkpoint.oracle.said import Loaded, heads_of, normed, probabilities, projected

Array = np.ndarray
ACTIVATIONS = ("hidden_activation", "hidden_act", "activation_function", "activation", "dense_act_fn", "afn")
TOLERANCE = 3e-4  # of the largest number compared; everything is float32


class ModelOracle:
    """One case: its model, its checkpoint as the atlas reads it, and where each role's tensor is used."""

    def __init__(self, case: OracleCase, open_it: Callable[[Path], Checkpoint] | None = None) -> None:
        self.case = case
        self.model = build(case)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.model.save_pretrained(folder)
            opened = open_it(folder) if open_it else open_checkpoint(in_folder(folder, stack=case.stack))
            self.opened, self.roles = opened, dict(opened)
            slots = {role: slot for role, slot in opened._slots.items() if not slot.formula}
            slots |= {f"{role} through": slot.through for role, slot in opened._slots.items() if slot.through}
            self.stored = {role: _as_stored(opened, slot) for role, slot in slots.items()}
        self.checkpoint = Loaded(self.roles, opened.architecture)
        self.family, self.architecture = opened.family, opened.architecture
        by_numbers: dict[bytes, str] = {}  # the module that holds a role's tensor has the same numbers
        for name, parameter in self.model.named_parameters():
            by_numbers.setdefault(parameter.detach().numpy().tobytes(), name.rpartition(".")[0])
        found = {role: by_numbers.get(stored.tobytes()) for role, stored in self.stored.items()}
        self.owner = {role: module for role, module in found.items() if module is not None}

    def compare(self) -> dict[str, float]:
        """Return for each thing that is compared its largest difference, as a share of the largest number."""
        self.worst: dict[str, float] = {}
        trace = run(self.case, self.model, constant=False)
        for layer in range(self.architecture.n_layer):
            self._matrices(trace, layer)
            self._norms(trace, layer)
            self._attention(trace, layer)
            self._mlp(trace, layer)
        self._end(trace)
        self._positions(run(self.case, self.model, constant=True))
        self._kernel()
        return self.worst

    def _compare(self, what: str, said: Array, seen: Array) -> None:
        difference = np.inf
        if said.shape == seen.shape:
            difference = float(np.abs(said - seen).max() / max(np.abs(seen).max(), 1e-6))
        self.worst[what] = max(self.worst.get(what, 0.0), difference if np.isfinite(difference) else np.inf)

    def seen(self, recorded: Mapping[str, list[Array]], role: str, layer: int) -> Array | None:
        """Return what the module of a role saw in a layer; a module that several layers share was called for each."""
        calls = recorded.get(self.owner.get(role, ""), [])
        if not calls:
            return None
        return calls[layer] if len(calls) == self.architecture.n_layer else calls[0]

    def _matrices(self, trace: Trace, layer: int) -> None:
        for name in ("attn.q", "attn.k", "attn.v", "attn.o", "mlp.in", "mlp.gate", "mlp.out"):
            role = f"blocks.{layer}.{name}"
            given, returned = self.seen(trace.given, role, layer), self.seen(trace.returned, role, layer)
            if role not in self.roles or given is None or returned is None:
                continue
            weight = self.roles[role].astype(np.float64)
            if name in ("attn.o", "mlp.out"):
                said = given @ weight.T + self.roles.get(f"{role}.bias", np.zeros(1))
            else:
                said = projected(self.roles, role, given)
            if said.shape == returned.shape:  # of matrices that are fused what comes of them is compared
                self._compare(name, said, returned)

    def _norms(self, trace: Trace, layer: int) -> None:
        for norm, reader in (("ln1", "attn.q"), ("ln2", "mlp.in"), ("ln2", "mlp.router")):
            role, matrix = f"blocks.{layer}.{norm}", f"blocks.{layer}.{reader}"
            given = self.seen(trace.given, matrix, layer)
            if given is None:
                continue
            if f"{role}.gain" in self.owner:
                calls = trace.given[self.owner[f"{role}.gain"]]
                said = [normed(self.roles, role, rows, self.architecture) for rows in calls]
                best = min(said, key=lambda rows: np.abs(rows - given).max() if rows.shape == given.shape else np.inf)
                self._compare(f"{norm} before {reader}", best, given)
            elif layer > 0 or self.family.bare_norms or "embedding_projection" not in self.roles:
                stream = self._stream(trace, layer, norm)
                bare = normed({}, role, stream, self.architecture, bare=self.family.bare_norms)
                self._compare(f"{norm} before {reader}", bare, given)

    def _end(self, trace: Trace) -> None:
        """Compare what the final norm makes of the last stream, and, in decoders, what the unembedding is given."""
        owner, head = self.owner.get("final_norm.gain"), self._head()
        if owner is not None:
            said = normed(self.roles, "final_norm", trace.given[owner][-1], self.architecture)
            direct = self.architecture.causal and not head.startswith("cls.")  # BERT's head has layers of its own
            seen = trace.given[head][-1] if direct and head in trace.given else None
            if seen is None or seen.shape != said.shape:
                seen = trace.returned[owner][-1]
            self._compare("final norm", _scaled_like(said, seen), seen)
        if "unembedding through" in self.owner:  # what is given to the projection in front of the head
            given = trace.given[self.owner["unembedding through"]][-1]
            self._compare("unembedding", given @ self.roles["unembedding"].T, trace.returned[head][-1])
        elif "unembedding" in self.roles and self.owner.get("unembedding") == head and head in trace.given:
            rows = trace.given[head][-1] @ self.roles["unembedding"].astype(np.float64).T
            self._compare(
                "unembedding", rows + self.roles.get("unembedding.bias", np.zeros(1)), trace.returned[head][-1]
            )

    def _head(self) -> str:
        """Return the name of the module that predicts tokens, empty where there is none."""
        module = self.model.get_output_embeddings()
        return next((name for name, each in self.model.named_modules() if each is module), "") if module else ""

    def _stream(self, trace: Trace, layer: int, norm: str) -> Array:
        """Return the stream as it is before attention or MLP of a block that has no norm with gains there."""
        attention, mlp = self.owner[f"blocks.{layer}.attn.o"], self.owner[f"blocks.{layer}.mlp.out"]
        if norm == "ln1":
            return trace.given[_block(trace, attention, mlp)][0]
        bare = f"{_shared(attention, mlp)}.post_attention_layernorm"
        return trace.given[bare if self.family.bare_norms else mlp.rpartition(".")[0]][0]

    def _attention(self, trace: Trace, layer: int) -> None:
        given = self.seen(trace.given, f"blocks.{layer}.attn.q", layer)
        context = self.seen(trace.given, f"blocks.{layer}.attn.o", layer)
        if given is None or not self.case.scores:
            return
        said = probabilities(self.checkpoint, layer, given)
        if trace.attention:
            self._compare("attention", said, trace.attention[layer])
        values = heads_of(self.checkpoint, f"blocks.{layer}.attn.v", given)
        values = np.repeat(values, len(said) // len(values), axis=0)
        mixed = (said @ values).transpose(1, 0, 2).reshape(len(given), -1)
        if context is not None:
            self._compare("values", mixed, context)

    def _mlp(self, trace: Trace, layer: int) -> None:
        """Compare what gates and inner channels make of what the MLP is given with what its last matrix is given."""
        gate, inner = f"blocks.{layer}.mlp.gate", f"blocks.{layer}.mlp.in"
        given = self.seen(trace.given, inner, layer)
        last = self.seen(trace.given, f"blocks.{layer}.mlp.out", layer)
        if gate not in self.roles or given is None or last is None:
            return
        said = self._activated(projected(self.roles, gate, given)) * projected(self.roles, inner, given)
        self._compare("mlp.gate", said, last)
        self._compare("mlp.in", said, last)

    def _activated(self, x: Array) -> Array:
        import torch
        from transformers.activations import ACT2FN

        config = self.model.config
        config = getattr(config, "text_config", config)
        name = next(getattr(config, key) for key in ACTIVATIONS if hasattr(config, key))
        return ACT2FN[name](torch.tensor(x)).numpy()

    def _positions(self, trace: Trace) -> None:
        """Compare what enters the first block, or its first norm, with a table's rows on top of one same token."""
        entering, skipped = self._entering(trace), 0
        P = self.roles.get("position_embedding")
        slot = self.family.slots.get("position_embedding")
        if self.architecture.vocab_size is None and slot is not None:
            skipped = self._tokens_before(slot)
        rows = entering[skipped:]
        table = np.zeros_like(rows) if P is None else P[: len(rows)].astype(np.float64)
        if table.shape != rows.shape:
            self._compare("positions", table, rows)
            return
        rest = rows - table
        if self.architecture.vocab_size is None:
            rest = rest[1:-1] if self.case.type == "whisper" else rest  # convolutions see the edges
            self._compare("positions", rest, np.broadcast_to(rest[0], rest.shape))
        else:
            token = self.roles["token_embedding"][7].astype(np.float64) * self.architecture.embedding_scale
            first_type = self.roles.get("token_type_embedding", np.zeros((1, 1)))[0].astype(np.float64)
            self._compare("positions", np.broadcast_to(token + first_type, rest.shape), rest)

    def _tokens_before(self, slot: Slot) -> int:
        """Return how many tokens come before the patches of an image: its class, and those with no position."""
        registers = getattr(self.model.config, "num_register_tokens", 0)
        return 0 if self.case.type == "whisper" else slot.skip + registers

    def _entering(self, trace: Trace) -> Array:
        """Return the sum of embeddings, before any norm."""
        for norm in ("embedding_norm", "blocks.0.ln1"):
            owner = self.owner.get(f"{norm}.gain")
            first = norm == "embedding_norm" or self.architecture.post_norm or self.case.type == "modernbert"
            if owner and first:
                return trace.given[owner][0]
        attention = self.owner["blocks.0.attn.o"]
        return trace.given[_block(trace, attention, self.owner.get("blocks.0.mlp.out", attention))][0]

    def _kernel(self) -> None:
        """Compare attention in the first layer where all that enters is positions."""
        if self.architecture.positions in ("rotary", "none") or not self.case.scores:
            return
        self._silence_all_but_positions()
        trace = run(self.case, self.model, constant=True)
        given = self.seen(trace.given, "blocks.0.attn.q", 0)
        assert given is not None
        P = self.roles.get("position_embedding")
        slot = self.family.slots.get("position_embedding")
        first = self._tokens_before(slot) if slot is not None and self.architecture.vocab_size is None else 0
        x = np.zeros((len(given), self.architecture.d_model)) if P is None else P[: len(given) - first]
        x = normed(self.roles, "embedding_norm", x.astype(np.float64), self.architecture)
        if "embedding_projection" in self.roles:
            x = projected(self.roles, "embedding_projection", x)
        x = normed(self.roles, "blocks.0.ln1", x, self.architecture, bare=self.family.bare_norms)
        self._compare("what is read of positions alone", x, given[first:])
        if not trace.attention:
            return
        if first == 0:
            self._compare("kernel", probabilities(self.checkpoint, 0, x), trace.attention[0])
        else:  # classes are keys too: scores among positions, before they compete with those, up to a row's constant
            seen = np.log(trace.attention[0][:, first:, first:])
            said = np.log(probabilities(self.checkpoint, 0, x))
            self._compare("kernel", said - said.mean(axis=2, keepdims=True), seen - seen.mean(axis=2, keepdims=True))

    def _silence_all_but_positions(self) -> None:
        others = ("token_type_embeddings.weight", "cls_token", "distillation_token", "class_embedding")
        tokens = self.stored.get("token_embedding", np.zeros(0)).tobytes()
        for name, parameter in self.model.named_parameters():
            is_tokens = bool(tokens) and parameter.detach().numpy().tobytes() == tokens
            if is_tokens or name.endswith(others) or "patch_embed" in name or ".conv" in name:
                parameter.data.zero_()


def _as_stored(opened: Checkpoint, slot: Slot) -> Array:
    return np.concatenate([np.atleast_1d(part) for part in opened._files.parts(slot.tensor)])


def _shared(one: str, other: str) -> str:
    return os.path.commonpath([name.replace(".", "/") for name in (one, other)]).replace("/", ".")


def _block(trace: Trace, attention: str, mlp: str) -> str:
    name = _shared(attention, mlp) if attention != mlp else attention.rsplit(".", 2)[0]
    while name not in trace.given:
        name = name.rpartition(".")[0]
    return name


def _scaled_like(said: Array, seen: Array) -> Array:
    """Return `said` times the one factor that fits best: nothing that is compared depends on it (T5 has one)."""
    factor = float(np.vdot(said, seen) / np.vdot(said, said))
    return said * factor if factor > 0 else said
