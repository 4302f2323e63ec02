"""Small logs written for a test: a quiet run, and one that a learning-rate jump upset."""

from __future__ import annotations

import json
import math
from pathlib import Path

STEPS = 400
JUMP = 300


def rows(*, jump: bool) -> list[dict[str, float]]:
    """Return a falling loss with a fixed ripple; from step 300 on, the rate is 20x for a while."""
    out = []
    for step in range(STEPS):
        ripple = math.sin(12.9898 * step) * 0.02
        upset = 3.0 * 0.8 ** (step - JUMP) if jump and step >= JUMP else 0.0
        hot = jump and JUMP <= step < JUMP + 20
        out.append(
            {
                "step": step,
                "loss": round(2.0 + 2.0 * math.exp(-step / 80) + ripple + upset, 5),
                "grad_norm": round(1.0 + 3 * ripple + 4 * upset, 5),
                "lr": 0.02 if hot else 0.001,
            }
        )
    return out


def write_csv(path: Path, *, jump: bool) -> Path:
    """Write the log as CSV and return its path."""
    lines = ["step,loss,grad_norm,lr"]
    lines += [",".join(str(value) for value in row.values()) for row in rows(jump=jump)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_jsonl(path: Path, *, jump: bool) -> Path:
    """Write the log as JSON lines and return its path."""
    text = "".join(json.dumps(row) + "\n" for row in rows(jump=jump))
    path.write_text(text, encoding="utf-8")
    return path
