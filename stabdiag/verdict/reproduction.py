"""A minimal reproduction in PyTorch for the layers of a log: lines to paste and to fill in."""

from __future__ import annotations

from collections.abc import Sequence

from stabdiag.steps.roles import parts_of

MOST_NAMES = 12  # names in the list; beyond them the modules that hold them

_MATCHING = """
def suspect(name):  # as logged: a tensor or a module, wrapped or not
    whole = f".{name}."
    return any(f".{s}.".replace("/", ".") in whole for s in SUSPECTS)

names = [name for name, _ in model.named_parameters()]
if not any(map(suspect, names)):
    raise SystemExit(f"SUSPECTS names none of {names}")
"""
_ALL = """
def suspect(name):  # the log singles out none: begin with all
    return True
"""
_WATCHING = """
for name, p in model.named_parameters():
    p.requires_grad_(suspect(name))  # all others are frozen

def say(name, what, value):
    for t in value if isinstance(value, (tuple, list)) else (value,):
        if torch.is_tensor(t) and t.is_floating_point():
            largest, bad = t.detach().abs().max(), (~t.isfinite()).sum()
            print(f"{name}: {what}, max {largest:.4g}, {bad} not finite")
            if what == "output" and t.requires_grad:
                t.register_hook(lambda g: say(name, "its gradient", g))

def watch(name):
    return lambda module, inputs, output: say(name, "output", output)

for name, module in model.named_modules():
    own = [f"{name}.{p}" for p, _ in module.named_parameters(recurse=False)]
    if any(map(suspect, own)):
        module.register_forward_hook(watch(name))

try:
    # stops at the first operation whose gradient is NaN, and names it
    with torch.autograd.detect_anomaly():
        loss_of(model, batch).backward()
except RuntimeError as error:
    print(error)
for name, p in model.named_parameters():
    if p.grad is not None:
        print(f"{name}: gradient {p.grad.norm():.4g}, norm {p.norm():.4g}")
"""


def outline(block: Sequence[str], step: int | None) -> tuple[str, ...]:
    """Return code that replays the step with hooks on the layers of `block`, all others frozen.

    Without a block the hooks are on every module. Names come from a log: each stands as a literal
    in ASCII, and nowhere else.
    """
    at = "the onset" if step is None else f"step {step}"
    lines = [
        "import torch",
        "",
        f"# fill in: your model as it was before {at}, its batch, your loss",
        "model = build_model()",
        "state = torch.load('CHECKPOINT', map_location='cpu')",
        "model.load_state_dict(state)",
        f"batch = batch_of(step={step})",
    ]
    if block:
        lines += ["", "SUSPECTS = [", *(f"    {name!a}," for name in _listed(block)), "]"]
    lines += (_MATCHING if block else _ALL).split("\n")
    lines += _WATCHING.strip("\n").split("\n")
    return tuple(lines)


def _listed(block: Sequence[str]) -> list[str]:
    """The layers; where they are many the modules that hold them."""
    return list(block) if len(block) <= MOST_NAMES else [name for name, _ in parts_of(block)]
