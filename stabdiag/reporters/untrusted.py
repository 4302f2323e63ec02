"""Text out of a log made harmless: a terminal, a browser or a CI page must not obey it."""

from __future__ import annotations

import unicodedata

# Categories that move the cursor, reorder text or can't be encoded: control, format (bidirectional
# overrides, zero width), surrogate, line and paragraph separator.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    r"""Return `text` with every control, format and surrogate character as a visible escape.

    An escape sequence in a column name becomes `\x1b[31m`, a line break `\n`.
    """
    if text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if unicodedata.category(char) not in _UNSAFE:
        return char
    return char.encode("ascii", "backslashreplace").decode() if ord(char) > 127 else _escape(char)


def _escape(char: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char, f"\\x{ord(char):02x}")
