"""Fuzz the readers, led by coverage: `make fuzz ARGS="--seconds 60"`, so long for each format.

The seeds are the small odd files in corpus/, a folder a format. Any input must give a table whose
columns load, or an error that says what to do; what does otherwise is kept and named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
_SLOWEST_SECONDS = 20  # for one input of at most _LONGEST_BYTES
_LONGEST_BYTES = 65536


def fuzz(seeds: Path, seconds: int, findings: Path) -> int:
    """Fuzz with the seeds of one format in a process of its own; return its exit code."""
    with tempfile.TemporaryDirectory() as found:
        command = [
            *(sys.executable, "-m", "tests.fuzz.one_format", found, str(seeds)),
            *(f"-max_total_time={seconds}", f"-timeout={_SLOWEST_SECONDS}"),
            *(f"-max_len={_LONGEST_BYTES}", f"-artifact_prefix={findings}/{seeds.name}-"),
            *("-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=0"),
        ]
        limit = seconds + 6 * _SLOWEST_SECONDS
        return subprocess.run(command, check=False, timeout=limit).returncode


def main() -> int:
    """Fuzz each format that was named, or all; exit 1 where an input did what none may."""
    formats = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir())
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="for each format")
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(formats))
    asked = parser.parse_args()
    findings = Path("fuzz-findings").resolve()
    findings.mkdir(exist_ok=True)
    bad = []
    for name in asked.formats or formats:
        print(f"{name}: {asked.seconds} s", flush=True)
        if fuzz(CORPUS / name, asked.seconds, findings):
            bad.append(name)
    if not any(findings.iterdir()):
        findings.rmdir()
    print(
        f"inputs that no reader survives: {', '.join(bad)}; see {findings}" if bad else "no fault"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
