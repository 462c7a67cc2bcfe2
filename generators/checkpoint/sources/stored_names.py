"""Names of tensors without what wrappers of a model put into them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from generators.base import notices

# Modules around a module, wherever one stands: no model calls a part of its own so.
AROUND = {
    "_orig_mod": "torch.compile",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_fsdp_wrapped_module": "FSDP",
    "_fpw_module": "FSDP",
    "_forward_module": "Lightning",
    "_module": "Opacus",
}
SEGMENT = re.compile(rf"(?<![^.])({'|'.join(AROUND)})\.")


def without_wrappers(stored: Sequence[str], place: str) -> Mapping[str, str]:
    """Return the name of each tensor without wrappers -> its stored name.

    Names that would no longer differ from one another are left as they are.
    """
    plain = {name: SEGMENT.sub("", name) for name in stored}
    count = Counter(plain.values())
    found = {by if count[by] == 1 else name: name for name, by in plain.items()}
    wrapped = {word for name, stored in found.items() if name != stored for word in SEGMENT.findall(stored)}
    if wrapped:
        words, by = (" and ".join(sorted(each)) for each in (wrapped, {AROUND[word] for word in wrapped}))
        notices.say_once(f"{place}: names of tensors hold {words}, as {by} writes them; that is left off.")
    return found
