"""Whether the places that a file gives its tensors can be: in order, apart, and inside the file."""

from collections.abc import Mapping

Span = tuple[int, int]  # first byte, and the one after the last


def check_layout(spans: Mapping[str, Span], begin: int, size: int, align: int = 1, gap: int | None = 0) -> None:
    """Check where a file says that its tensors are.

    Args:
        spans: by tensor.
        begin: where the data begin, after all headers.
        size: of the file.
        align: what the first byte of each is a multiple of, counted from `begin`.
        gap: how many bytes may lie between two; None: any number.

    Raises ValueError: they overlap, lie in the header or beyond the end, or leave bytes that belong to none.
    """
    before, end = "the header", begin
    for name, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        if last < first or last > size:
            raise ValueError(f"it is cut off: {name} ends at byte {last} of {size}")
        if first < end:
            raise ValueError(f"{name} begins at byte {first}, inside {before}, which ends at {end}")
        if (first - begin) % align:
            raise ValueError(f"{name} begins at byte {first}, which is no multiple of {align} after the header")
        if gap is not None and first - end > gap:
            raise ValueError(f"{first - end} bytes before {name} belong to no tensor")
        before, end = name, last
