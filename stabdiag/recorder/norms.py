"""L2 norms of many tensors at once, of one model's gradients or parameters; and clipping by them.

Nothing here waits for the device: results stay on it until `fetching` brings them over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from stabdiag.recorder.sharding import is_dtensor, local_part

ABSENT = -1.0  # the norm of a tensor that is not there; a norm is never negative
# of torch.nn.utils.clip_grad_norm_
_CLIP_EPSILON = 1e-6


@dataclass(frozen=True)
class Norms:
    """The norms of some named tensors: `values` [L], on one device, ABSENT where there is none."""

    names: tuple[str, ...]
    values: Tensor


@dataclass(frozen=True)
class Named:
    """A tensor to measure, None where there is none; where it lives, and over which processes."""

    name: str
    tensor: Tensor | None
    device: torch.device
    groups: tuple[Any, ...] = ()


def norms_of(tensors: Iterable[Named]) -> tuple[Norms, ...]:
    """Measure the L2 norm of each tensor as a whole, also where processes hold parts of it.

    Norms of 16-bit tensors are taken in 32 bits: in fp16 they would overflow at 65504. NaN where
    the tensor holds a NaN, else infinity where it holds one or the sum of squares overflows.

    Returns:
        one record for each device and way of sharding. All processes that share a sharded tensor
        must call this with the same names in the same order.
    """
    found: dict[tuple[torch.device, tuple[Any, ...]], list[tuple[str, Tensor | None]]] = {}
    for named in tensors:
        tensor, groups, device = named.tensor, named.groups, named.device
        if tensor is not None:
            tensor = tensor.detach()
            if is_dtensor(tensor):
                tensor, groups = local_part(tensor)
            if tensor.is_sparse:
                tensor = tensor.coalesce().values()
            device = tensor.device
        elif not groups:
            continue
        found.setdefault((device, groups), []).append((named.name, tensor))
    return tuple(_measured(members, device, groups) for (device, groups), members in found.items())


def _measured(
    members: list[tuple[str, Tensor | None]], device: torch.device, groups: tuple[Any, ...]
) -> Norms:
    names = tuple(name for name, _ in members)
    norms = _foreach([tensor for _, tensor in members if tensor is not None])
    if groups:
        return Norms(names, _over_processes(members, norms, device, groups))
    return Norms(names, torch.stack(norms))


def _over_processes(
    members: list[tuple[str, Tensor | None]],
    norms: list[Tensor],
    device: torch.device,
    groups: tuple[Any, ...],
) -> Tensor:
    """Sum squares, and whether there is a tensor at all, over the processes in one call each."""
    both = torch.zeros(2, len(members), dtype=wide(device), device=device)
    at: list[int] | slice = [i for i, (_, tensor) in enumerate(members) if tensor is not None]
    if len(norms) == len(members):
        at = slice(None)  # a list would be copied to the device
    if norms:
        both[0, at] = torch.stack(norms).to(both.dtype).square()
        both[1, at] = 1.0
    for group in groups:
        dist.all_reduce(both, group=group)
    return torch.where(both[1] > 0, both[0].sqrt(), ABSENT)


def _foreach(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Norms in float32, or float64 for float64, in the order given."""
    norms: list[Tensor] = [torch.empty(0)] * len(tensors)
    by_type: dict[torch.dtype, list[int]] = {}
    for index, tensor in enumerate(tensors):
        by_type.setdefault(tensor.dtype, []).append(index)
    for dtype, indices in by_type.items():
        group = [tensors[i] for i in indices]
        for index, norm in zip(indices, _one_type(group, dtype), strict=True):
            norms[index] = norm
    return norms


def _one_type(group: list[Tensor], dtype: torch.dtype) -> Sequence[Tensor]:
    norms: Sequence[Tensor]
    try:
        if dtype in (torch.float32, torch.float64):
            norms = torch._foreach_norm(group)
        else:
            norms = torch._foreach_norm(group, 2, dtype=torch.float32)
    except TypeError:  # before PyTorch 2.4 it can't be told to count in 32 bits
        norms = [torch.linalg.vector_norm(tensor, dtype=torch.float32) for tensor in group]
    return norms


def wide(device: torch.device) -> torch.dtype:
    """Return the widest float of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def clip(gradients: Sequence[Tensor], norms: Sequence[Norms], max_norm: float) -> None:
    """Scale gradients in place as `torch.nn.utils.clip_grad_norm_` does, by norms already taken."""
    parts = [n.values.clamp(min=0.0) for n in norms]
    if not parts:
        return
    home = parts[0].device
    total = torch.linalg.vector_norm(torch.cat([p.to(home, torch.float32) for p in parts]))
    factor = torch.clamp(max_norm / (total + _CLIP_EPSILON), max=1.0)
    by_place: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for gradient in gradients:
        local: Any = gradient.detach()
        local = local.to_local() if is_dtensor(local) else local
        local = local._values() if local.is_sparse else local
        by_place.setdefault((local.device, local.dtype), []).append(local)
    for (device, _), group in by_place.items():
        torch._foreach_mul_(group, factor.to(device))
