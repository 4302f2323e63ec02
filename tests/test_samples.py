"""The samples: the handbook's numbers are in its recorded run, the README names every log."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).resolve().parents[1] / "sample_logs"
LOGS = {path.name for path in SAMPLES.iterdir() if path.is_file() and path.suffix != ".md"}

# "Training Stability: Debugging Training Instability", Language AI Handbook: the table it prints.
TABLE = """
0 2.0107 0.1917 26.5670 0.00722
10 1.9674 0.1889 26.5752 0.00711
20 1.9495 0.1889 26.5815 0.00711
30 1.9310 0.1885 26.6000 0.00709
40 1.8933 0.1896 26.6370 0.00712
50 1.8609 0.1924 26.7158 0.00720
"""
# The same chapter's gradient norms after one backward pass, in its order.
LAYERS = {
    "norm2.weight": "0.177542",
    "ffn.2.weight": "0.058973",
    "ffn.0.weight": "0.030297",
    "norm2.bias": "0.016122",
    "attention.in_proj_weight": "0.012976",
    "attention.out_proj.weight": "0.012630",
    "attention.out_proj.bias": "0.007798",
    "ffn.2.bias": "0.007755",
    "norm1.bias": "0.007732",
    "norm1.weight": "0.007320",
    "attention.in_proj_bias": "0.004454",
    "ffn.0.bias": "0.002660",
}


@pytest.fixture(scope="module")
def handbook_run() -> list[dict[str, str]]:
    with (SAMPLES / "handbook_run.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("printed", TABLE.strip().splitlines())
def test_the_handbooks_table_is_reproduced(
    handbook_run: list[dict[str, str]], printed: str
) -> None:
    row = handbook_run[int(printed.split()[0])]
    loss, grad_norm, param_norm, ratio = (
        float(row[name]) for name in ("loss", "grad_norm", "param_norm", "grad_param_ratio")
    )
    assert f"{row['step']} {loss:.4f} {grad_norm:.4f} {param_norm:.4f} {ratio:.5f}" == printed


def test_the_handbooks_run_has_sixty_steps(handbook_run: list[dict[str, str]]) -> None:
    assert [int(row["step"]) for row in handbook_run] == list(range(60))


@pytest.mark.parametrize("layer", LAYERS)
def test_the_handbooks_layer_norms_are_the_first_row(
    handbook_run: list[dict[str, str]], layer: str
) -> None:
    recorded = float(handbook_run[0][f"grad_norm/{layer}"])
    # ffn.0.weight is 0.03029752, just past the middle between two printed values
    limit = 0.53e-6 if layer == "ffn.0.weight" else 0.5e-6
    assert abs(recorded - float(LAYERS[layer])) <= limit


def test_the_layers_rank_as_the_handbook_prints_them(handbook_run: list[dict[str, str]]) -> None:
    norms = {
        name.removeprefix("grad_norm/"): float(value)
        for name, value in handbook_run[0].items()
        if name.startswith("grad_norm/")
    }
    assert sorted(norms, key=norms.__getitem__, reverse=True) == list(LAYERS)


def test_the_readme_names_every_sample_and_no_other() -> None:
    text = (SAMPLES / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b[a-z0-9_]+\.(?:csv|jsonl|parquet)\b", text)) - {"labels.jsonl"}
    assert named == LOGS


def test_the_samples_are_small() -> None:
    sizes = {name: (SAMPLES / name).stat().st_size for name in LOGS}
    assert max(sizes.values()) < 300_000
    assert sum(sizes.values()) < 2_000_000


def test_the_samples_come_in_three_formats() -> None:
    assert {Path(name).suffix for name in LOGS} == {".csv", ".jsonl", ".parquet"}


@pytest.mark.parametrize("script", ["make_samples.py", "make_bench.py"])
def test_recording_without_pytorch_says_what_is_missing(script: str) -> None:
    # -S: no installed packages, so no PyTorch
    command = [sys.executable, "-S", str(SAMPLES / "record" / script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "error: recording runs needs PyTorch 2.13.0, which is not installed",
        "hint: pip install '.[samples]'",
    ]
