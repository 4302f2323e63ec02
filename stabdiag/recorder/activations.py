"""The largest absolute activation of each module, by forward hooks that sleep between its steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from stabdiag.errors import UsageError
from stabdiag.recorder.sharding import is_dtensor, plain_name, unwrapped

_NOTHING_NEW = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.Identity)


class ActivationMaxima:
    """Collect maxima while `awake`; several forward passes of one step give their maximum."""

    def __init__(self, model: nn.Module, which: bool | str | Iterable[str]) -> None:
        """Hook the modules.

        Args:
            model: the model, wrapped or not.
            which: True for all modules without children (and attention), names of modules, or one
                regular expression that their names match as a whole.

        Raises:
            UsageError: nothing in the model is called so.
        """
        self.awake = False
        self._maxima: dict[str, Tensor] = {}
        chosen = _chosen(model, which)
        self._handles = [
            module.register_forward_hook(self._hook(name)) for name, module in chosen.items()
        ]

    def _hook(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def look(module: nn.Module, _: Any, output: Any) -> None:
            if not self.awake or not module.training:
                return
            tensor: Any = first_real_tensor(output)
            if tensor is None or tensor.numel() == 0:
                return
            with torch.no_grad():
                local = tensor.to_local() if is_dtensor(tensor) else tensor
                # of order infinity: one pass, no copy, and a NaN is kept
                top = torch.linalg.vector_norm(local.detach(), float("inf")).float()
                before = self._maxima.get(name)
                self._maxima[name] = top if before is None else torch.maximum(before, top)

        return look

    def take(self) -> dict[str, Tensor]:
        """Return what was collected and begin anew."""
        maxima, self._maxima = self._maxima, {}
        return maxima

    def remove(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()


def _chosen(model: nn.Module, which: bool | str | Iterable[str]) -> dict[str, nn.Module]:
    named = {plain_name(name): m for name, m in unwrapped(model).named_modules() if name}
    if which is True:
        return {
            name: m
            for name, m in named.items()
            if isinstance(m, nn.MultiheadAttention)
            or (not isinstance(m, _NOTHING_NEW) and not any(m.children()))
        }
    if isinstance(which, str):
        found = {name: m for name, m in named.items() if re.fullmatch(which, name)}
        if not found:
            raise UsageError(
                f"activations: no module's name matches {which!r}",
                f"names are such as {', '.join(list(named)[:3])}",
            )
        return found
    wanted = [] if which is False else list(which)
    for name in wanted:
        if name not in named:
            raise UsageError(
                f"activations: no module is called {name!r}",
                f"names are such as {', '.join(list(named)[:3])}",
            )
    return {name: named[name] for name in wanted}


def first_real_tensor(output: Any) -> Tensor | None:
    """Return the first tensor of real numbers in a module's output, or in its containers."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() else None
    parts: Iterable[Any] = ()
    if isinstance(output, Mapping):
        parts = output.values()
    elif isinstance(output, tuple | list):
        parts = output
    return next((t for t in map(first_real_tensor, parts) if t is not None), None)
