"""What launchers and loggers put before a line: ranks, dates, levels, source positions."""

from __future__ import annotations

import re

MOST_PREFIXES = 8
PREFIX = re.compile(
    r"\s{0,20}(?:[IWEFD][0-9]{4} [0-9:.]{8,20}\s{1,9}[0-9]{1,20} [\w./-]{1,80}:[0-9]{1,6}\] ?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{8,20}(?:Z|[+-][0-9:]{4,6})?(?:\s?[-:|,](?=\s))?"
    r"|[0-9]{1,2}[:/][0-9]{2}[:/][0-9]{2,4}(?:[.,][0-9]{1,9})?(?=\s)"
    r"|\[(?![^\]]{0,80}(?:[Ll]oss|[Ss]tep|[Ii]ter|[Ee]poch|[Bb]atch))[^\]\n]{1,80}\]:?(?:<std\w{3}>:?)?"
    r"|(?:DEBUG|INFO|WARNING|WARN|ERROR)\b\s{0,9}[-:|]?"
    r"|[\w.]{1,60}:[\w.<>]{1,60}:[0-9]{1,6} -|[\w./]{1,80}\.py:[0-9]{1,6}:? ?-?"
    r"|\(\w{1,60} pid=[^)\n]{1,60}\)|[\w.]{1,40} - (?=[A-Z]|\w{1,40} - )|root:|__main__ ?[-:]"
    r"|-(?=\s)|[0-9]{1,5}:(?= ))"
)


def without_prefix(line: str) -> str:
    """Take the prefixes off a line; blanks behind them stay."""
    start = 0
    for _ in range(MOST_PREFIXES):
        match = PREFIX.match(line, start)
        if match is None:
            break
        start = match.end()
    return line[start:]
