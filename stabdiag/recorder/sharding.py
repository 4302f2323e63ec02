"""Several processes: who writes, over which processes a sharded norm is summed, plain names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

# What wrappers put into a parameter's path.
_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


@dataclass(frozen=True)
class Parameter:
    """A parameter under its plain name.

    `groups` are the process groups over which its shards are spread; empty where each process
    has all of it.
    """

    name: str
    tensor: Tensor
    groups: tuple[Any, ...] = field(default=(), compare=False)


def parameters_of(model: nn.Module) -> list[Parameter]:
    """Return the model's parameters, each once, in its order, under names without wrappers."""
    inner = unwrapped(model)
    sharded = _groups_of_fsdp1(inner)
    return [
        Parameter(plain_name(name), p, _groups_of_dtensor(p) or sharded.get(id(p), ()))
        for name, p in inner.named_parameters()
    ]


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside DistributedDataParallel or DataParallel."""
    while isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
        model = model.module
    return model


def plain_name(name: str) -> str:
    """Return a dotted name without the parts that wrappers put into it."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _groups_of_fsdp1(model: nn.Module) -> dict[int, tuple[Any, ...]]:
    """Map the id of each parameter that FSDP 1 shards to its process groups."""
    if not dist.is_available() or not dist.is_initialized():
        return {}
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    found: dict[int, tuple[Any, ...]] = {}
    # from the outside in: a nested module's own strategy is the one that holds
    for module in FullyShardedDataParallel.fsdp_modules(model):
        whole = module.sharding_strategy is ShardingStrategy.NO_SHARD
        for parameter in module.parameters():
            found[id(parameter)] = () if whole else (module.process_group,)
    return found


def is_dtensor(tensor: Tensor) -> bool:
    """Say whether the tensor is spread over a device mesh (FSDP 2, tensor parallelism)."""
    return hasattr(tensor, "device_mesh") and hasattr(tensor, "to_local")


def plain(value: Any) -> Any:
    """Return a tensor without its graph and whole, where processes hold parts of it."""
    if isinstance(value, Tensor):
        value = value.detach()
        return value.full_tensor() if is_dtensor(value) else value
    return value


def local_part(tensor: Any) -> tuple[Tensor, tuple[Any, ...]]:
    """Return this process's part of a DTensor and the process groups that hold the other parts.

    Partial sums over processes are summed first, so that the parts are disjoint.
    """
    if any(placement.is_partial() for placement in tensor.placements):
        from torch.distributed.tensor import Replicate

        settled = [Replicate() if p.is_partial() else p for p in tensor.placements]
        tensor = tensor.redistribute(placements=settled)
    return tensor.to_local(), _groups_of_dtensor(tensor)


def _groups_of_dtensor(tensor: Any) -> tuple[Any, ...]:
    if not is_dtensor(tensor):
        return ()
    return tuple(
        tensor.device_mesh.get_group(dimension)
        for dimension, placement in enumerate(tensor.placements)
        if not placement.is_replicate()
    )


def is_writer() -> bool:
    """Say whether this is the process that writes the log: rank 0, or the only one."""
    if dist.is_available() and dist.is_initialized():
        return bool(dist.get_rank() == 0)
    return os.environ.get("RANK", "0") == "0"


def mean_over_ranks(value: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes (itself where there is one)."""
    if not dist.is_available() or not dist.is_initialized():
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()
