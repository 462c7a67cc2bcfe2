"""Running some of the blocks: from a stream that is known before them, up to the last one that matters."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from generators.runner import modules

SAME = 1e-4  # largest difference of states that are the same, relative to the largest


@contextmanager
def only(blocks: Sequence[Any], part: range, states: Any, beside: int | None) -> Iterator[None]:
    """Run some blocks, the first of them on `states` (batch, n, d); the others return what they are given.

    `beside` is how many values blocks return beside the stream; None where they return the stream alone.
    """

    def passed(*args: Any, **kwargs: Any) -> Any:
        given = modules.given(args, kwargs)
        return given if beside is None else (given, *[None] * beside)

    def begin(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return modules.with_given(args, kwargs, states)

    with ExitStack() as undone:
        for block in (*blocks[: part.start], *blocks[part.stop :]):
            block.forward = passed
            undone.callback(block.__dict__.pop, "forward")
        hook = blocks[part.start].register_forward_pre_hook(begin, with_kwargs=True, prepend=True)
        undone.callback(hook.remove)
        yield


def same_from_the_middle(
    blocks: Sequence[Any], middle: int, states: Any, run: Callable[[], Any]
) -> tuple[int | None] | None:
    """Return how many values blocks return beside the stream, if a run from the middle gives what a whole one does.

    `states` are what the block in the middle is given in a whole run; `run` returns the last hidden states.
    """
    outputs: list[Any] = []
    hook = blocks[-1].register_forward_hook(lambda _, args, output: outputs.append(output))
    try:
        whole = run()
    finally:
        hook.remove()
    beside = len(outputs[0]) - 1 if isinstance(outputs[0], tuple) else None
    try:
        with only(blocks, range(middle, len(blocks)), states, beside):
            again = run()
    except Exception:  # blocks of some architectures give each other more than the stream
        return None
    return (beside,) if float((again - whole).abs().max()) <= SAME * float(whole.abs().max()) else None
