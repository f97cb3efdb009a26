"""Text from outside, made safe to print.

Process command lines, metric labels, event messages and response bodies are written by others. On a
terminal a control character is an instruction, so every such string passes through `clean` where it
enters the program.
"""

import unicodedata

_MAX_LENGTH = 512
_MOST_DIGITS = 18

# Bidirectional overrides and isolates reorder what follows them on screen (CVE-2021-42574), zero-width
# and variation characters hide or widen cells, and the last two are interlinear and object marks.
_INVISIBLE = frozenset("\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2060\ufeff\ufff9\ufffa\ufffb\ufffc") | {
    chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xFE00, 0xFE10))
}


def _is_safe(char: str) -> bool:
    return char not in _INVISIBLE and unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def clean(text: str, limit: int = _MAX_LENGTH) -> str:
    """Return `text` as one printable line of at most `limit` characters.

    Control, format, surrogate and private-use characters are dropped; tabs and line breaks become one
    blank; a cut text ends in an ellipsis.
    """
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text
    # A line far over the limit is cut before it is walked, so that a hostile body costs little.
    head = text[: limit * 2]
    kept = "".join(" " if c in "\t\n\r\v\f" else c for c in head if c in "\t\n\r\v\f" or _is_safe(c))
    if len(kept) > limit or len(text) > len(head):
        return kept[: limit - 1] + "…"
    return kept


def is_whole(text: str) -> bool:
    """Whether a text is a whole number that `int` takes.

    Superscripts are digits to `str.isdigit` and no numbers to `int`, which refuses some thousand digits as well.
    """
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
