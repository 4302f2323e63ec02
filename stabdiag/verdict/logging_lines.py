"""The lines that log what a run lacks: for a plain PyTorch loop, the HF Trainer and Lightning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FRAMEWORKS = ("pytorch", "hf", "lightning")

# In the order in which they stand in the loop: after backward(), after step(), at the end.
_PYTORCH: Mapping[str, tuple[str, ...]] = {
    "loss": ('row["loss"] = loss.item()',),
    "loss_scale": ('row["loss_scale"] = scaler.get_scale()  # of GradScaler, in fp16',),
    "activation_max": (
        "if step % 10 == 0:",
        '    row |= {f"activation_max/{n}": v.item() for n, v in maxima.items()}',
    ),
    "layers": (
        "for name, p in model.named_parameters():  # before clipping",
        "    if p.grad is not None and step % 10 == 0:",
        '        row[f"grad_norm/{name}"] = p.grad.norm().item()',
        '        row[f"param_norm/{name}"] = p.detach().norm().item()',
    ),
    "grad_norm": (
        "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)",
        'row["grad_norm"] = norm.item()  # before clipping; max_norm=inf only measures',
    ),
    "lr": ('row["lr"] = optimizer.param_groups[0]["lr"]',),
    "param_norm": (
        "if step % 100 == 0:",
        "    norms = [p.detach().norm() for p in model.parameters()]",
        '    row["param_norm"] = torch.linalg.vector_norm(torch.stack(norms)).item()',
    ),
    "batch": ('row["sample_ids"] = indices.tolist()  # or the batch id, or seed and position',),
    "val_loss": (
        "if step % 500 == 0:",
        '    row["val_loss"] = evaluate(model)  # your own evaluation',
    ),
}
# Once, before the loop: the largest output of each module.
_PYTORCH_HOOKS = (
    "# once, before the loop",
    "maxima = {}",
    "def keep_maximum(name):",
    "    def hook(module, inputs, output):",
    "        if torch.is_tensor(output):",
    "            maxima[name] = output.detach().abs().max()",
    "    return hook",
    "for name, module in model.named_modules():",
    '    module.register_forward_hook(keep_maximum(name or "model"))',
)
# Gradients are scaled until then; a loop that does it already must not do it twice.
_UNSCALE = "scaler.unscale_(optimizer)  # once a step, before any norm"
_HF_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "loss": (
        '    logging_strategy="steps",',
        "    logging_steps=1,  # the logged loss is the mean over this window",
        "    logging_nan_inf_filter=False,  # else a NaN loss is hidden",
    ),
    "val_loss": ('    eval_strategy="steps",', "    eval_steps=500,"),
}
_LIGHTNING_STEP: Mapping[str, tuple[str, ...]] = {
    "loss": ('    self.log("train_loss", loss, on_step=True)',),
    "batch": ('    self.log("batch_idx", float(batch_idx), on_step=True)',),
}
# What a callback of the recorder brings; the Trainers have no option for it.
_RECORDED = ("param_norm", "grad_param_ratio", "layers", "batch", "loss_scale", "activation_max")


def lines_for(framework: str, gaps: Sequence[str]) -> tuple[str, ...]:
    """Return the code that logs what `gaps` names, to paste into that framework's script."""
    return {"pytorch": _pytorch, "hf": _hugging_face, "lightning": _lightning}[framework](gaps)


def _pytorch(gaps: Sequence[str]) -> tuple[str, ...]:
    wanted = set(gaps)
    if "grad_param_ratio" in wanted:  # it follows from the two norms
        wanted |= {"grad_norm", "param_norm"}
    lines = [line for name, its in _PYTORCH.items() if name in wanted for line in its]
    norms = bool(wanted & {"grad_norm", "layers"})
    return (
        *(_PYTORCH_HOOKS if "activation_max" in wanted else ()),
        "# after loss.backward(), before optimizer.step()",
        *((_UNSCALE,) if norms and "loss_scale" in wanted else ()),
        'row = {"step": step}',
        *lines,
        'print(json.dumps(row), file=log, flush=True)  # log = open("run.jsonl", "a")',
    )


def _hugging_face(gaps: Sequence[str]) -> tuple[str, ...]:
    # loss, grad norm (before clipping) and learning rate come in one record of the Trainer
    wanted = {"loss" if gap in ("grad_norm", "lr") else gap for gap in gaps}
    arguments = [line for name, its in _HF_ARGUMENTS.items() if name in wanted for line in its]
    open_call = ["args = TrainingArguments(", "    # beside what you have:"]
    lines = [*open_call, *arguments, ")"] if arguments else []
    if wanted & set(_RECORDED):
        lines += [
            "from stabdiag.recorder import HuggingFaceRecorder",
            f"trainer.add_callback(HuggingFaceRecorder({_recorder_arguments(gaps)}))",
        ]
    return tuple(lines)


def _lightning(gaps: Sequence[str]) -> tuple[str, ...]:
    lines = []
    logged = [line for name, its in _LIGHTNING_STEP.items() if name in gaps for line in its]
    if logged:
        lines += ["def training_step(self, batch, batch_idx):", "    ...", *logged]
    if "val_loss" in gaps:
        lines += [
            "def validation_step(self, batch, batch_idx):",
            "    ...",
            '    self.log("val_loss", loss)',
        ]
    if "grad_norm" in gaps:
        lines += [
            "# in the LightningModule; it runs before clipping",
            "from lightning.pytorch.utilities import grad_norm",
            "def on_before_optimizer_step(self, optimizer):",
            "    self.log_dict(grad_norm(self, norm_type=2))",
        ]
    callbacks = []
    if "lr" in gaps:
        lines.append("from lightning.pytorch.callbacks import LearningRateMonitor")
        callbacks.append('LearningRateMonitor(logging_interval="step")')
    if (set(_RECORDED) - {"batch"}) & set(gaps):
        lines.append("from stabdiag.recorder import LightningRecorder")
        callbacks.append(f"LightningRecorder({_recorder_arguments(gaps)})")
    inside = ["    callbacks=[", *(f"        {c}," for c in callbacks), "    ],"]
    inside = inside if callbacks else []
    return (*lines, "Trainer(", "    log_every_n_steps=1,", *inside, ")")


def _recorder_arguments(gaps: Sequence[str]) -> str:
    return '"run.jsonl"' + (", activations=True" if "activation_max" in gaps else "")
