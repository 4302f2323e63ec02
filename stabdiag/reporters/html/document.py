"""A whole page in one file: nothing is loaded, and nothing of a log is more than text."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
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


@cache
def asset(name: str) -> str:
    """Return the text of a file that the package ships for pages."""
    return files(_ASSETS).joinpath(name).read_text(encoding="utf-8")


def document(
    title: str,
    body: Sequence[str],
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    licences: Sequence[str] = (),
) -> str:
    """Return the page; `styles`, `scripts` and the `licences` of both name assets, in order.

    Its policy lets the browser load nothing, and use no style and run no script but these.
    """
    sheets, sources = [asset(name) for name in styles], [asset(name) for name in scripts]
    policy = (
        f"default-src 'none'; style-src {_hashes(sheets)}; script-src {_hashes(sources)}; "
        "base-uri 'none'; form-action 'none'"
    )
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=False)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{text(title)}</title>",
        *(f"<style>{sheet}</style>" for sheet in sheets),
        "</head>",
        "<body>",
        *body,
        *(f"<!--\n{asset(name)}-->" for name in licences),
        *(f"<script>{source}</script>" for source in sources),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _hashes(sources: Sequence[str]) -> str:
    digests = (hashlib.sha256(source.encode("utf-8")).digest() for source in sources)
    return " ".join(f"'sha256-{b64encode(one).decode('ascii')}'" for one in digests) or "'none'"


def section(name: str, title: str, body: Sequence[str]) -> list[str]:
    """Return `body` as a section under its heading, or nothing where there is none."""
    if not body:
        return []
    return [
        f'<section id="{name}" aria-labelledby="{name}-title">',
        f'<h2 id="{name}-title">{text(title)}</h2>',
        *body,
        "</section>",
    ]


def folded(summary: str, body: Sequence[str], *, unfolded: bool = False) -> list[str]:
    """Return `body` behind a summary that opens it."""
    state = " open" if unfolded else ""
    return [f"<details{state}><summary>{text(summary)}</summary>", *body, "</details>"]


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    caption: str = "",
    attributes: Mapping[str, str] | None = None,
    stacked: bool = False,
) -> str:
    """Return a table whose cells are HTML already; the first cell of a row heads it.

    Of a `stacked` one the cells stand below one another, each with its column's name, where the
    page is narrow. Its roles are said, since browsers forget them then.
    """

    def role(name: str) -> str:
        return f' role="{name}"' if stacked else ""

    extra = "".join(f' {key}="{text(value)}"' for key, value in (attributes or {}).items())
    extra += ' class="stacked"' if stacked else ""
    side = [' class="n"' if place in right else "" for place in range(len(header))]
    labels = [f' data-label="{text(name)}"' if stacked and name else "" for name in header]
    heads = "".join(
        f'<th scope="col"{side[place]}{role("columnheader")}>{text(name)}</th>'
        if name
        else "<td></td>"
        for place, name in enumerate(header)
    )
    lines = [f'<div class="wide"><table{extra}{role("table")}>']
    if caption:
        lines.append(f"<caption>{text(caption)}</caption>")
    group = role("rowgroup")
    lines.append(f"<thead{group}><tr{role('row')}>{heads}</tr></thead><tbody{group}>")
    for row in rows:
        cells = [f'<th scope="row"{side[0]}{labels[0]}{role("rowheader")}>{row[0]}</th>']
        cells += [
            f"<td{side[place]}{labels[place]}{role('cell')}>{cell}</td>"
            for place, cell in enumerate(row)
            if place
        ]
        lines.append(f"<tr{role('row')}>{''.join(cells)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)
