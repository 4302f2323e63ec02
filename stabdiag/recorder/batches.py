"""What a batch looks like: lengths, token entropy and repetition; sizes of real-valued inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from stabdiag.recorder.norms import wide

# A batch as a loop has it: token ids, an input of real numbers, (input, target), or named parts
# (input_ids, attention_mask, labels) and named numbers, each a statistic of the user's own.
Batch: TypeAlias = "Tensor | Mapping[str, Any] | Iterable[Any]"

IGNORED = -100  # the target that PyTorch's cross entropy leaves out
_SHIFT = 1 << 31  # makes one number of two token ids


def batch_statistics(batch: Batch | None) -> dict[str, float | Tensor]:
    """Return the statistics of one batch by their names in the log.

    Token ids [B, T]: `batch/seq_len` (mean, in tokens), `batch/max_len`, `batch/token_entropy`
    (nats), `batch/repetition` (share of pairs of neighbours that occurred before in their
    sequence). Real numbers: `batch/mean`, `batch/std`, `batch/abs_max`. `labels`: `batch/targets`,
    how many are not ignored. Numbers under a name stay what they are: `batch/<name>`.

    Tensors in the result are single numbers that are still on their device; nothing waits for it.
    """
    if batch is None:
        return {}
    if isinstance(batch, Tensor):
        return _of_tensor(batch, None)
    if isinstance(batch, Mapping):
        return _of_parts(batch)
    first = next((part for part in batch if isinstance(part, Tensor)), None)
    return {} if first is None else _of_tensor(first, None)


def _of_parts(batch: Mapping[str, Any]) -> dict[str, float | Tensor]:
    found: dict[str, float | Tensor] = {}
    tensors = {name: part for name, part in batch.items() if isinstance(part, Tensor)}
    ids = tensors.get("input_ids")
    if ids is not None:
        found |= _of_tensor(ids, tensors.get("attention_mask"))
    else:
        real = next((t for t in tensors.values() if t.is_floating_point() and t.dim() > 0), None)
        if real is not None:
            found |= _of_tensor(real, None)
    labels = tensors.get("labels")
    if labels is not None and labels.dim() > 0 and not labels.is_floating_point():
        found["batch/targets"] = (labels != IGNORED).sum()
    for name, part in batch.items():
        if isinstance(part, int | float) and not isinstance(part, bool):
            found[f"batch/{name}"] = float(part)
        elif isinstance(part, Tensor) and part.dim() == 0:
            found[f"batch/{name}"] = part.detach()
    return found


def _of_tensor(tensor: Tensor, mask: Tensor | None) -> dict[str, float | Tensor]:
    if tensor.numel() == 0 or tensor.dtype == torch.bool or tensor.is_complex():
        return {}
    if tensor.is_floating_point():
        size = tensor.detach().float()
        return {
            "batch/mean": size.mean(),
            "batch/std": size.std(correction=0),
            "batch/abs_max": size.abs().amax(),
        }
    if tensor.dim() == 1:  # one sequence, or one label for each sample
        tensor, mask = tensor[None], mask[None] if mask is not None else None
    if tensor.dim() != 2:
        return {}
    real = torch.ones_like(tensor, dtype=torch.bool)
    if mask is not None and mask.shape == tensor.shape:
        real = mask.bool()
    length = real.sum(dim=1)
    return {
        "batch/seq_len": length.float().mean(),
        "batch/max_len": length.amax(),
        "batch/token_entropy": _entropy(tensor.long(), real),
        "batch/repetition": _repetition(tensor.long(), real),
    }


def _entropy(ids: Tensor, real: Tensor) -> Tensor:
    """Entropy of the tokens of all sequences in nats, 0 where there is none.

    Counted in sorted order, since `bincount` and `unique` would wait for the device.
    """
    ordered = torch.where(real, ids, -1).reshape(-1).sort().values
    count = torch.searchsorted(ordered, ordered, right=True) - torch.searchsorted(ordered, ordered)
    token = ordered >= 0
    size = token.sum().clamp(min=1).to(wide(ids.device))
    logs = torch.where(token, count.to(size.dtype).log(), 0.0)
    return torch.where(token.any(), size.log() - logs.sum() / size, 0.0)


def _repetition(ids: Tensor, real: Tensor) -> Tensor:
    """Share of pairs of neighbours that occurred before in their sequence; 0 without pairs."""
    both = real[:, 1:] & real[:, :-1]
    codes = torch.where(both, ids[:, :-1] * _SHIFT + ids[:, 1:], -1).sort(dim=1).values
    again = (codes[:, 1:] == codes[:, :-1]) & (codes[:, 1:] >= 0)
    return again.sum() / both.sum().clamp(min=1)


def index_fields(indices: Any) -> dict[str, Any]:
    """Return the data indices of one batch by their names in the log.

    One number or word is a `batch_id`, several are `sample_ids`; a tensor stays on its device
    until the row is written.
    """
    if indices is None:
        return {}
    if isinstance(indices, int | str):
        return {"batch_id": indices}
    if isinstance(indices, Tensor):
        return {"batch_id" if indices.dim() == 0 else "sample_ids": indices}
    if hasattr(indices, "tolist"):
        return index_fields(indices.tolist())
    return {"sample_ids": list(indices)}
