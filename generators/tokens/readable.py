import unicodedata


def readable_form(raw: bytes) -> str:
    r"""Return bytes as text in which everything can be seen and that no other bytes share.

    Space, tab, newline and the other ASCII controls are shown as control pictures (␠ ␉ ␊), bytes that aren't UTF-8 as
    `\xNN`, and as `\u{NNNN}` what can't be seen or doesn't stand alone: combining marks, format and bidi characters,
    other spaces, unassigned and private code points, conjoining jamo, what normalisation would change, and literal
    control pictures. A backslash is doubled. Letters that are written from right to left stay as they are: a page
    wraps the form in `<bdi>`.
    """
    return raw.decode("utf-8", "surrogateescape").translate(_SHOWN)


class _Shown(dict[int, str]):
    """The readable form of each character, by code point; bytes that aren't UTF-8 are lone surrogates."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _shown(code)
        return shown


def _shown(code: int) -> str:
    character = chr(code)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02X}"
    if code <= 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if character == "\\":
        return "\\\\"
    return f"\\u{{{code:04X}}}" if _is_hidden(character) else character


def _is_hidden(character: str) -> bool:
    code = ord(character)
    return (
        unicodedata.category(character)[0] in "MCZ"
        or unicodedata.normalize("NFC", character) != character
        or any(code in block for block in _HIDDEN_BLOCKS)
    )


_SHOWN = _Shown()
_HIDDEN_BLOCKS = (
    range(0x115F, 0x1200),  # jamo that join with the one before, and fillers
    range(0xD7B0, 0xD800),
    range(0x2400, 0x2440),  # control pictures
    range(0x2800, 0x2801),  # the empty Braille cell
    range(0x3164, 0x3165),  # Hangul fillers
    range(0xFFA0, 0xFFA1),
    range(0xFFFC, 0xFFFD),  # the object replacement character
)
