"""The ways of logging: which columns, under which names, how often, in which format."""

from __future__ import annotations

from dataclasses import dataclass, replace

NAMES: dict[str, dict[str, str]] = {
    "plain": {
        "step": "step", "loss": "loss", "grad_norm": "grad_norm", "lr": "lr",
        "param_norm": "param_norm", "grad_param_ratio": "grad_param_ratio",
        "loss_scale": "loss_scale", "tokens": "tokens_seen", "seq_len": "batch/mean_length",
        "token_entropy": "batch/token_entropy", "repetition": "batch/repetition",
        "attn_logit_max": "attn_logit_max", "batch_id": "batch_id", "samples": "sample_indices",
        "layer_grad_norm": "grad_norm/*", "layer_param_norm": "param_norm/*",
        "val_loss": "val_loss",
    },
    "wandb": {
        "step": "_step", "loss": "train/loss", "grad_norm": "train/grad_norm",
        "lr": "train/learning_rate", "param_norm": "train/param_norm",
        "loss_scale": "train/loss_scale", "tokens": "train/tokens",
        "seq_len": "data/seq_len_mean", "token_entropy": "data/token_entropy",
        "repetition": "data/repeat_share", "epoch": "train/epoch", "batch_id": "data/batch_idx",
        "layer_grad_norm": "gradients/*", "layer_param_norm": "parameters/*",
        "val_loss": "eval/loss",
    },
    "hf": {
        "step": "step", "loss": "loss", "grad_norm": "grad_norm", "lr": "learning_rate",
        "tokens": "num_input_tokens_seen", "epoch": "epoch", "val_loss": "eval_loss",
    },
    "megatron": {
        "step": "iteration", "loss": "lm loss", "grad_norm": "grad norm", "lr": "learning rate",
        "param_norm": "params norm", "loss_scale": "loss scale", "tokens": "consumed samples",
        "layer_grad_norm": "grad norm/*", "layer_param_norm": "params norm/*",
        "val_loss": "lm loss validation",
    },
    "lightning": {
        "lr": "lr-AdamW", "step": "step", "loss": "train_loss_step",
        "grad_norm": "grad_2.0_norm_total", "param_norm": "param_norm",
        "loss_scale": "loss_scale", "token_entropy": "token_entropy", "epoch": "epoch",
        "layer_grad_norm": "grad_2.0_norm/*", "layer_param_norm": "param_norm/*",
        "val_loss": "val_loss",
    },
    "nanogpt": {
        "step": "iter", "loss": "train/loss", "grad_norm": "norm", "lr": "lr",
        "val_loss": "val/loss",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Style:
    """One way of logging."""

    variant: str
    style: str = "plain"
    format: str = "csv"  # csv, jsonl, parquet
    cadence: int = 1
    averaged: bool = False
    grad_norm: str = "pre"  # pre, post_clip, missing
    layers: str = "all"  # all, modules, none
    non_finite: str = "NaN"  # NaN, empty, null
    first_step: int = 0
    param_every: int = 20
    leave_out: tuple[str, ...] = ("attn_logit_max", "samples")


_ALL = (
    Style("plain"),
    Style("plain_js", format="jsonl", leave_out=("attn_logit_max",)),
    Style("plain_pq", format="parquet"),
    Style("nolayers", layers="none"),
    Style("nogn", layers="none", grad_norm="missing"),
    Style("clipped", layers="none", grad_norm="post_clip"),
    Style("c5", cadence=5),
    Style("c10", cadence=10, param_every=10),
    Style("empty", non_finite="empty"),
    Style("null_js", format="jsonl", non_finite="null"),
    Style("logits", leave_out=("samples",)),
    Style("samples", leave_out=("attn_logit_max",)),
    Style("offset", layers="modules", first_step=120_000),
    Style("modules", layers="modules"),
    Style("nopn", layers="none", leave_out=("attn_logit_max", "samples", "param_norm")),
    Style("bare", layers="none", leave_out=(
        "attn_logit_max", "samples", "param_norm", "seq_len", "token_entropy", "repetition",
        "batch_id", "tokens")),
    Style("pn1", param_every=1),
    Style("wandb", "wandb"),
    Style("wandb5", "wandb", cadence=5),
    Style("wandb_pq", "wandb", "parquet", non_finite="null"),
    Style("wandb_js", "wandb", "jsonl", layers="none"),
    Style("hf", "hf", "jsonl", cadence=10, layers="none"),
    Style("hf1", "hf", "jsonl", layers="none"),
    Style("hf_avg", "hf", "jsonl", cadence=10, averaged=True, layers="none"),
    Style("mega", "megatron", layers="modules"),
    Style("mega_js", "megatron", "jsonl", layers="none"),
    Style("light", "lightning", layers="modules"),
    Style("nano", "nanogpt", layers="none"),
)  # fmt: skip
STYLES = {style.variant: style for style in _ALL}


def style_named(variant: str, first_step: int = 0) -> Style:
    """Return the style of that name, its steps counted from `first_step`."""
    style = STYLES[variant]
    return replace(style, first_step=first_step) if first_step else style


def columns_of(style: Style, *, fp16: bool) -> dict[str, str]:
    """Return series -> column name for what this style writes (`*`: one a layer)."""
    names = dict(NAMES[style.style])
    dropped = set(style.leave_out)
    if not fp16:
        dropped.add("loss_scale")
    if style.layers == "none":
        dropped |= {"layer_grad_norm", "layer_param_norm"}
    if style.grad_norm == "missing":
        dropped |= {"grad_norm", "grad_param_ratio"}
    if style.grad_norm == "post_clip" or "param_norm" in dropped:
        dropped |= {"grad_param_ratio"}
    return {series: name for series, name in names.items() if series not in dropped}
