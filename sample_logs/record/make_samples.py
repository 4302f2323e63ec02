"""Record the sample logs of the repository again.

    python sample_logs/record/make_samples.py --out sample_logs

Each is a short training run on a CPU (see `samples` below); the same PyTorch, Python and kind of
processor give the same files. Another processor's kernels round otherwise: see the README there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from torch_check import require_torch

require_torch()

import faults_data as data  # noqa: E402
import faults_optimizer as opt  # noqa: E402
import faults_state as state  # noqa: E402
import torch  # noqa: E402
from batch_data import write_batches  # noqa: E402
from configuration import RunConfig  # noqa: E402
from handbook import write_handbook_run  # noqa: E402
from loop import HEALTHY, Fault, train  # noqa: E402
from styles import STYLES, Style  # noqa: E402
from write_log import write_log  # noqa: E402

SMALL = RunConfig(
    width=32, depth=2, seq_len=48, naming="llama", norm="rms", bias=False, fused_qkv=False,
    init_std=0.02, lr=3e-3, steps=500,
)  # fmt: skip
GPT2 = RunConfig(width=32, depth=2, naming="gpt2", init_std=0.02, lr=3e-3, steps=500)
NO_NORMS = replace(
    GPT2, depth=4, mlp_norm=False, lr=0.017, warmup=20, clip=0.0, betas=(0.9, 0.999), steps=300
)
BATCHES_KEPT = range(116, 321)  # of bad_batch.parquet: the bad one and 200 ordinary ones before


@dataclass(frozen=True)
class Sample:
    """One sample log."""

    file: str
    config: RunConfig
    fault: Fault
    style: Style


def samples() -> list[Sample]:
    """Return the samples in the order of the README's table."""
    return [
        Sample("healthy.csv", SMALL, HEALTHY, STYLES["plain"]),
        Sample(
            "lr_too_high.jsonl",
            replace(NO_NORMS, lr=0.06, warmup=300, seed=2, steps=400),
            opt.lr_rising("long warm-up"), STYLES["hf1"],
        ),
        Sample(
            "bad_batch.parquet", GPT2, data.bad_batch("repeat", 317, period=3), STYLES["wandb_pq"]
        ),
        Sample(
            "fp16_overflow.jsonl",
            replace(GPT2, depth=4, precision="fp16", lr=2e-3, steps=450),
            state.fp16_growth(200, 2, 1.06, 0.25), STYLES["mega_js"],
        ),
        Sample(
            "nan_in_one_layer.csv", GPT2, state.nan_under_where(280, "blocks.1.mlp.up.weight"),
            STYLES["plain"],
        ),
        Sample(
            "one_layer_dominates.csv", replace(SMALL, depth=3),
            state.gradient_summed("blocks.1.attn.out.weight", 32),
            STYLES["mega"],
        ),
        Sample(
            "weight_decay_too_small.csv",
            replace(SMALL, lr=0.015, schedule="constant", weight_decay=1e-7, steps=1200),
            opt.weight_decay_too_small(), STYLES["c10"],
        ),
        Sample(
            "poor_init.csv", replace(GPT2, steps=400),
            state.init_scaled(60.0, "head.weight", note=""), STYLES["light"],
        ),
        *(
            Sample(f"seed_{seed}.csv", replace(NO_NORMS, seed=seed), HEALTHY, STYLES["nano"])
            for seed in range(1, 5)
        ),
    ]  # fmt: skip


def main() -> None:
    """Read the command line and record every sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--only", nargs="*", help="names of the files to record (default: all)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.only or "handbook_run.csv" in options.only:
        write_handbook_run(options.out / "handbook_run.csv")
    for sample in samples():
        if not options.only or sample.file in options.only:
            record = train(sample.config, sample.fault)
            write_log(record, sample.config, sample.style, options.out / sample.file)
        if sample.file == "bad_batch.parquet":
            path = options.out / "bad_batch_data/batches.parquet"
            write_batches(sample.config, sample.fault, BATCHES_KEPT, path)


if __name__ == "__main__":
    main()
