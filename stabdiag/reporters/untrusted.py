"""Text out of a log made harmless: a terminal, a browser or a CI page must not obey it."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    r"""Return `text` with every character that is not plainly visible as an escape.

    That is control, format (bidirectional overrides, zero width), surrogate, private and
    unassigned characters: an escape sequence in a column name becomes `\x1b[31m`, a line break
    `\n`. Blanks of other widths become blanks.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _visible(char) for char in text)


def _visible(char: str) -> str:
    if unicodedata.category(char) == "Zs":
        return " "
    if ord(char) < 0x80:
        return repr(char)[1:-1]
    return char.encode("ascii", "backslashreplace").decode()


def not_a_formula(cell: str) -> str:
    """Return a cell that a spreadsheet shows as it is: one that would be a formula gets a quote.

    Source: OWASP, "CSV Injection": a cell that begins with =, +, -, @, a tab or a return.
    """
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
