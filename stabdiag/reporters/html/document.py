"""A whole page in one file: nothing is loaded, and nothing of a log is more than text."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from stabdiag.reporters.numbers import strict_json
from stabdiag.reporters.untrusted import printable

_ASSETS = "stabdiag.reporters.html.assets"
# What could end a script element, or a string in it, as an escape that JSON knows.
_INERT = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def text(words: str) -> str:
    """Return `words` as text of an element or attribute: escaped, control characters visible."""
    return escape(printable(words), quote=True)


def data(name: str, value: Any) -> str:
    """Return a script element that holds `value` as JSON; no name in it can end it."""
    body = json.dumps(strict_json(value), allow_nan=False, separators=(",", ":"))
    return f'<script type="application/json" id="{name}">{body.translate(_INERT)}</script>'


def asset(name: str) -> str:
    """Return the text of a file that the package ships for pages."""
    return files(_ASSETS).joinpath(name).read_text(encoding="utf-8")


def document(
    title: str, body: Sequence[str], *, styles: Sequence[str], scripts: Sequence[str]
) -> str:
    """Return the page; `styles` and `scripts` name assets, in order.

    Its policy lets the browser load nothing, and run no script but these.
    """
    sources = [asset(name) for name in scripts]
    allowed = " ".join(f"'sha256-{_digest(source)}'" for source in sources) or "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{text(title)}</title>",
        *(f"<style>{asset(name)}</style>" for name in styles),
        "</head>",
        "<body>",
        *body,
        *(f"<script>{source}</script>" for source in sources),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _digest(source: str) -> str:
    return b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    caption: str = "",
    attributes: Mapping[str, str] | None = None,
) -> str:
    """Return a table whose cells are HTML already; the first cell of a row heads it."""
    extra = "".join(f' {key}="{text(value)}"' for key, value in (attributes or {}).items())
    side = [' class="n"' if place in right else "" for place in range(len(header))]
    heads = "".join(
        f'<th scope="col"{side[place]}>{text(name)}</th>' for place, name in enumerate(header)
    )
    lines = [f'<div class="wide"><table{extra}>']
    if caption:
        lines.append(f"<caption>{text(caption)}</caption>")
    lines.append(f"<thead><tr>{heads}</tr></thead><tbody>")
    for row in rows:
        cells = [f'<th scope="row"{side[0]}>{row[0]}</th>'] if row else []
        cells += [f"<td{side[place]}>{cell}</td>" for place, cell in enumerate(row) if place]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)
