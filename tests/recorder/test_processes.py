"""Two processes under DDP, FSDP and tensor parallelism record what one process records alone."""
# ruff: noqa: E402 (what needs torch is imported behind the skip)

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.recorder.conftest import WHY, strict_rows

torch = pytest.importorskip("torch", reason=WHY)

from tests.recorder.loops import batch_of, train

ROOT = Path(__file__).resolve().parents[2]
WORLD = 2
STEPS = 3
SECONDS = 300  # some ten on a quiet machine; a busy one may take a minute to load PyTorch
WAYS = ("ddp", "fsdp2", "fsdp1", "tensor_parallel")

if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
    pytest.skip("this PyTorch has no gloo to connect processes", allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    command = [sys.executable, "-m", "tests.recorder.processes", str(folder)]
    running = [
        subprocess.Popen(
            [*command, str(rank), str(WORLD)], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for rank in range(WORLD)
    ]
    try:
        said = [process.communicate(timeout=SECONDS)[1] for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert [process.returncode for process in running] == [0] * WORLD, said
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The same training on whole batches in this process, without and with clipping."""
    path = tmp_path_factory.mktemp("alone")
    every = {"param_norm": 1, "layers": 1}
    train(path / "plain.jsonl", STEPS, every=every)
    train(path / "clip.jsonl", STEPS, every=every, clip=0.1)
    return {name: strict_rows(path / f"{name}.jsonl") for name in ("plain", "clip")}


def test_batches_can_be_shared() -> None:
    assert len(batch_of(0)[0]) % WORLD == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("end", "kind"), [("", "plain"), ("_end", "plain"), ("_clip", "clip")], ids=str
)
def test_norms_are_those_of_the_whole_model(
    folder: Path, alone: dict[str, list[dict[str, Any]]], way: str, end: str, kind: str
) -> None:
    """Also where they are taken at the end of the backward pass, and where they clip."""
    rows = strict_rows(folder / f"{way}{end}.jsonl")
    assert [row["step"] for row in rows] == list(range(STEPS))
    for row, expected in zip(rows, alone[kind], strict=True):
        norms = {name for name in expected if "norm" in name or "ratio" in name}
        assert {name for name in row if "norm" in name or "ratio" in name} == norms
        for name in norms:
            assert row[name] == pytest.approx(expected[name], rel=1e-4), name
        assert row["batch_id"] == expected["batch_id"]


@pytest.mark.parametrize("way", WAYS)
def test_the_loss_is_averaged_over_processes_if_asked_for(
    folder: Path, alone: dict[str, list[dict[str, Any]]], way: str
) -> None:
    rows = strict_rows(folder / f"{way}_clip.jsonl")
    losses = [row["loss"] for row in alone["clip"]]
    assert [row["loss"] for row in rows] == pytest.approx(losses, rel=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_every_process_counts_and_one_writes(folder: Path, way: str) -> None:
    for rank in range(WORLD):
        state = json.loads((folder / f"{way}.{rank}.json").read_text())
        assert state == {"next_step": STEPS}
    assert len((folder / f"{way}.jsonl").read_text().splitlines()) == STEPS


@pytest.mark.parametrize("way", ["ddp", "fsdp2"])
def test_a_loop_that_clips_first_hands_over_the_norm(
    folder: Path, alone: dict[str, list[dict[str, Any]]], way: str
) -> None:
    for row, expected in zip(strict_rows(folder / f"{way}_told.jsonl"), alone["clip"], strict=True):
        for name in [name for name in expected if name.startswith("grad_norm")]:
            assert row[name] == pytest.approx(expected[name], rel=1e-4), name


@pytest.mark.parametrize("way", ["ddp", "fsdp2"])
def test_a_nan_on_another_process_is_seen_in_the_gradients(folder: Path, way: str) -> None:
    """Also: the look at the parameters that it brings is taken by all processes at one step."""
    rows = strict_rows(folder / f"{way}_nan.jsonl")
    assert isinstance(rows[1]["loss"], float)  # rank 0 has a loss of its own
    assert rows[1]["grad_norm"] == "NaN"
    assert rows[1]["grad_norm/0.weight"] == "NaN"
    assert [row["loss"] for row in rows[2:]] == ["NaN"]
