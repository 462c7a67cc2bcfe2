from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from generators.runner import modules


def held(blocks: Sequence[Any], channels: Any, levels: Any, *, last: bool) -> AbstractContextManager[None]:
    """Run with channels of the stream held at `levels[i]` before block i, and if `last` before the final norm.

    `channels` is a tensor of integers on the device, `levels` is (stages, channels) or (stages, n, channels); where
    it is NaN, nothing is held.
    """

    def set_to(stage: int, states: Any) -> Any:
        changed, level = states.clone(), levels[stage]
        changed[..., channels] = level.where(~level.isnan(), changed[..., channels])
        return changed

    def before(stage: int) -> Any:
        def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return modules.with_given(args, kwargs, set_to(stage, modules.given(args, kwargs)))

        return hook

    def after(_: Any, args: Any, output: Any) -> Any:
        return modules.with_returned(output, set_to(len(blocks), modules.returned(output)))

    def hooks() -> Iterator[Any]:
        for stage, block in enumerate(blocks):
            yield block.register_forward_pre_hook(before(stage), with_kwargs=True)
        if last:
            yield blocks[-1].register_forward_hook(after)

    return modules.hooked(hooks())


def shifted(block: Any, by: Any) -> AbstractContextManager[None]:
    def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return modules.with_given(args, kwargs, modules.given(args, kwargs) + by)

    return modules.hooked(part.register_forward_pre_hook(hook, with_kwargs=True) for part in [block])


def silenced(joining: Any, channels: Sequence[int]) -> AbstractContextManager[None]:
    def hook(_: Any, args: tuple[Any, ...]) -> Any:
        joined = args[0].clone()
        joined[..., channels] = 0
        return (joined, *args[1:])

    return modules.hooked(part.register_forward_pre_hook(hook) for part in [joining])
