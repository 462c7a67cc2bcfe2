from collections.abc import Sequence


def listed(words: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + list(words[-1:]))


def many(count: int, what: str) -> str:
    """Return "1 model" or "2 models", for regular plurals."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def ranges(numbers: Sequence[int], to: str = "-", fewest: int = 2) -> list[str]:
    """Return numbers as "3", and each run of at least so many successive ones as "6-10"."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    runs = [range(start, end + 1) for start, end in zip(starts, ends, strict=True)]
    said = ([f"{run[0]}{to}{run[-1]}"] if len(run) >= fewest else map(str, run) for run in runs)
    return [each for one in said for each in one]


def layers(numbers: Sequence[int]) -> str:
    """Return "no layer", "layer 3" or "layers 0, 1 and 6 to 10"."""
    said = listed(ranges(numbers, " to ", fewest=3))
    return f"layer{'' if len(numbers) == 1 else 's'} {said}" if numbers else "no layer"


def first(words: Sequence[object], most: int) -> str:
    """Return "a, b", or "a, b and 3 more" where there are more than `most`."""
    named = ", ".join(map(str, words[:most]))
    return f"{named} and {len(words) - most} more" if len(words) > most else named
