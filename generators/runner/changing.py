from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from generators.runner import modules


@contextmanager
def held(blocks: Sequence[Any], channels: Any, levels: Any, *, last: bool) -> Iterator[None]:
    """Run with channels of the stream held at `levels[i]` before block i, and if `last` after the last block.

    Args:
        blocks: in order.
        channels: which, a tensor of integers on the device.
        levels: by stage, (stages, channels) or (stages, n, channels).
        last: hold them before the final norm too.
    """

    def set_to(stage: int, states: Any) -> Any:
        changed = states.clone()
        changed[..., channels] = levels[stage]
        return changed

    def before(stage: int) -> Any:
        def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return modules.with_given(args, kwargs, set_to(stage, modules.given(args, kwargs)))

        return hook

    def after(_: Any, args: Any, output: Any) -> Any:
        return modules.with_returned(output, set_to(len(blocks), modules.returned(output)))

    with ExitStack() as hooks:
        for stage, block in enumerate(blocks):
            hooks.callback(block.register_forward_pre_hook(before(stage), with_kwargs=True).remove)
        if last:
            hooks.callback(blocks[-1].register_forward_hook(after).remove)
        yield


@contextmanager
def shifted(block: Any, by: Any) -> Iterator[None]:
    def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return modules.with_given(args, kwargs, modules.given(args, kwargs) + by)

    with ExitStack() as hooks:
        hooks.callback(block.register_forward_pre_hook(hook, with_kwargs=True).remove)
        yield


@contextmanager
def silenced(joining: Any, channels: Sequence[int]) -> Iterator[None]:
    def hook(_: Any, args: tuple[Any, ...]) -> Any:
        joined = args[0].clone()
        joined[..., channels] = 0
        return (joined, *args[1:])

    with ExitStack() as hooks:
        hooks.callback(joining.register_forward_pre_hook(hook).remove)
        yield
