"""One process of several: trains the same model plain, under DDP or sharded, and records it.

`python -m tests.recorder.processes FOLDER RANK WORLD`: all ways in one start, since starting is
what takes the time. Every process sees its own share of each batch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from stabdiag.recorder import Recorder
from stabdiag.recorder.backward_end import at_backward_end
from tests.recorder.loops import batch_of, loss_of, tiny_model

STEPS = 3
EVERY = {"param_norm": 1, "layers": 1}


def ddp(model: nn.Module) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model)


def fsdp2(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def fsdp1(model: nn.Module) -> nn.Module:
    inner = FullyShardedDataParallel(
        model[2],
        use_orig_params=True,
        device_id=torch.device("cpu"),
    )
    model[2] = inner
    return FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))


def tensor_parallel(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(output_layouts=Replicate())})


WAYS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "ddp": ddp,
    "fsdp2": fsdp2,
    "fsdp1": fsdp1,
    "tensor_parallel": tensor_parallel,
}


def share(step: int, rank: int, world: int) -> Any:
    x, y = batch_of(step)
    size = len(x) // world
    return x[rank * size :][:size], y[rank * size :][:size]


def record(folder: Path, way: str, rank: int, world: int, **options: Any) -> None:
    """Train and record; `nan_at` of a rank poisons its loss.

    With `at_end` the norms are taken by the autograd engine's own end of the backward pass.
    """
    at_end = options.pop("at_end", False)
    clip_first = options.pop("clip_first", None)
    nan_at, nan_rank = options.pop("nan_at", None), options.pop("nan_rank", 0)
    model = WAYS[way](tiny_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    name = options.pop("name", way)
    with Recorder(model, optimizer, folder / f"{name}.jsonl", every=EVERY, **options) as rec:
        for step in range(STEPS):
            whole = way == "tensor_parallel"  # there processes share a layer, not a batch
            loss = loss_of(model, batch_of(step) if whole else share(step, rank, world))
            if step == nan_at and rank == nan_rank:
                loss = loss * float("nan")
            if at_end:
                at_backward_end(loss, lambda: rec.measure(scaled=False))
                rec.add_batch(loss, indices=step)
                loss.backward()
            else:
                loss.backward()
                told = clip_first and nn.utils.clip_grad_norm_(model.parameters(), clip_first)
                rec.after_backward(loss, indices=step, grad_norm=told)
            optimizer.step()
            rec.after_step()
            optimizer.zero_grad()
    (folder / f"{name}.{rank}.json").write_text(json.dumps(rec.state_dict()))


def main(folder: Path, rank: int, world: int) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=240),
    )
    for way in WAYS:
        record(folder, way, rank, world)
        record(folder, way, rank, world, name=f"{way}_clip", clip=0.1, reduce_loss=True)
        record(folder, way, rank, world, name=f"{way}_end", at_end=True)
    for way in ("ddp", "fsdp2"):
        record(folder, way, rank, world, name=f"{way}_told", clip_first=0.1)
    late = {"late_steps": 2, "nan_at": 1, "nan_rank": 1}
    record(folder, "fsdp2", rank, world, name="fsdp2_nan", **late)
    record(folder, "ddp", rank, world, name="ddp_nan", **late)
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    sys.stderr.flush()
    os._exit(0)  # gloo's threads may abort an orderly exit on a busy machine; all is written
