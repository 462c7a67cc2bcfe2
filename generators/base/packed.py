"""Long lists of numbers, and of words, in JSON, in fewer bytes: for files that the site's own scripts fetch.

A list becomes `{"packed": text}` or `{"packed": text, "per": k}`: each number is a whole one over k (1 where it isn't
said), from which the one before it is taken away. The differences are written in the digits of base 64, as source
maps write them: the lowest bit is the sign, five bits a digit, the lowest first, and a digit from 32 on says that
another follows. An absent number is a `.`, and leaves the one before it as it was. A list of words without spaces
becomes `{"words": text}`, a space between two. `site_src/assets/packed.js` reads both.
"""

from collections.abc import Sequence
from typing import Any

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ABSENT = "."
FEWEST = 8  # numbers of a list that is packed
MOST_DECIMALS = 8
LARGEST = 2**52  # that a script divides exactly


def packed(value: Any) -> Any:
    """Return plain JSON with every long list of numbers or words packed where it can be; nothing changes by it."""
    if isinstance(value, dict):
        return {key: packed(item) for key, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if len(value) >= FEWEST and all(isinstance(item, str) and " " not in item for item in value):
        return {"words": " ".join(value)}
    if len(value) < FEWEST or not all(item is None or type(item) in (int, float) for item in value):
        return [packed(item) for item in value]
    decimals = max((_decimals(item) for item in value if item is not None), default=0)
    largest = max((abs(item) for item in value if item is not None), default=0)
    if decimals > MOST_DECIMALS or largest * 10**decimals > LARGEST:
        return list(value)
    text = _differences([None if item is None else round(item * 10**decimals) for item in value])
    return {"packed": text, "per": 10**decimals} if decimals else {"packed": text}


def unpacked(value: Any) -> Any:
    """Return what was packed, as it was."""
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"words"}:
        return value["words"].split(" ")
    if "packed" not in value:
        return {key: unpacked(item) for key, item in value.items()}
    per = value.get("per", 1)
    return [None if item is None else item / per if per > 1 else item for item in _sums(value["packed"])]


def _decimals(value: float) -> int:
    """Return how many decimals a number has; more than are packed, where it has no end."""
    text = f"{value:.{MOST_DECIMALS + 1}f}".rstrip("0")
    found = len(text.partition(".")[2])
    return found if float(text) == value else MOST_DECIMALS + 1


def _differences(whole: Sequence[int | None]) -> str:
    words, before = [], 0
    for item in whole:
        words.append(ABSENT if item is None else _digits(item - before))
        before = before if item is None else item
    return "".join(words)


def _digits(difference: int) -> str:
    rest, text = abs(difference) * 2 + (difference < 0), ""
    while rest >= 32:
        text += DIGITS[32 + rest % 32]
        rest //= 32
    return text + DIGITS[rest]


def _sums(text: str) -> list[int | None]:
    found: list[int | None] = []
    value = rest = shift = 0
    for letter in text:
        if letter == ABSENT:
            found.append(None)
            continue
        digit = DIGITS.index(letter)
        rest += (digit % 32) << shift
        shift += 5
        if digit < 32:
            value += -(rest >> 1) if rest & 1 else rest >> 1
            found.append(value)
            rest = shift = 0
    return found
