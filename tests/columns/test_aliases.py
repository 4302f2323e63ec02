"""Which name means which series."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stabdiag.columns import ColumnRole, understand
from tests.tables import table_of

COUNT = [1.0, 2.0, 3.0]


def role_of(name: str, *others: str) -> ColumnRole:
    """The role of a column in a table of it, a step and others."""
    cells = {"step": [1, 2, 3]} | {other: COUNT for other in others} | {name: COUNT}
    plan = understand(table_of(cells))
    return next(role for role in plan.roles if role.column == name)


MEANINGS = {
    "loss": [
        *("loss", "train_loss", "train/loss", "Train/Loss", "training/loss", "train_loss_step"),
        *("train_loss_epoch", "total_loss", "lm loss", "lm_loss", "avg_train_loss", "trl"),
        *("reduced_train_loss", "loss_net", "step_loss", "average_loss", "actor/pg_loss"),
        *("ce_loss", "nll_loss", "training_loss", "loss/train", "objective", "train/total_loss"),
        *(
            "loss/train/total",
            "train/CrossEntropyLoss",
            "Train/Samples/train_loss",
            "learning/loss",
        ),
        *("update/loss",),
        *("tr_loss", "per_token_loss", "metrics.loss", "trainLoss", "loss/mean"),
        *("info/learner/default_policy/learner_stats/total_loss", "actor_loss"),
    ],
    "val_loss": [
        *("val_loss", "eval_loss", "validation/loss", "valid_loss", "val/loss", "test_loss", "tel"),
        *("val loss", "validation/ctc_loss", "vloss", "dev_loss", "eval/loss", "eval_lm_loss"),
        *("validation_loss", "loss/val", "lm loss validation", "val_loss_epoch"),
    ],
    "grad_norm": [
        *("grad_norm", "norm", "gnorm", "train_gnorm", "gradient_2norm", "grad norm"),
        *("grad_gnorm", "actor/grad_norm", "critic/grad_norm", "grad_norm_0", "grad_norm_1"),
        *("grad_2.0_norm_total", "train/grad_norm", "gradient_norm", "total_grad_norm"),
        *("optim/total_grad_norm", "global_grad_norm", "grad_l2", "grad_norm/all", "gradnorm"),
        *("grads/norm", "grad/norm/total", "l2_norm/grad/global", "learning/grad_norm"),
        *("grad_2.0_norm_total_step", "GradNorm", "train/grad_norm_step"),
    ],
    "grad_norm_clipped": ["grad_norm_clipped", "clipped_grad_norm", "train/grad_norm_clipped"],
    "param_norm": ["param_norm", "params norm", "weight_norm", "l2_norm", "model/param_norm"],
    "lr": [
        *("lr", "learning_rate", "learning rate", "train_lr", "lr/pg0", "current_lr_0", "actor/lr"),
        *("cur_lr", "train/learning_rate", "learnrate_pg0", "lr-AdamW", "lr-AdamW/pg1"),
        *("optim/learning_rate_group0", "base_lr", "lr-DecoupledAdamW/group0", "learning-rate"),
    ],
    "loss_scale": [
        *("loss scale", "loss_scale", "train_loss_scale", "amp_scaler", "scaler/scale"),
        *("grad_scale", "lg_loss_scale", "Train/Samples/loss_scale"),
    ],
    "skipped": [
        *("number of skipped iterations", "skipped", "optimizer_applied", "overflow", "found_inf"),
    ],
    "nan_count": ["number of nan iterations"],
    "epoch": ["epoch", "train/epoch", "training/epoch"],
    "tokens": [
        *("tokens", "tokens seen", "consumed tokens", "consumed samples", "samples"),
        *("num_tokens", "tokens_seen", "train/tokens", "throughput/total_tokens"),
        *("num_input_tokens_seen",),
    ],
    "wall_time": ["Wall time", "_timestamp", "timestamp", "_runtime", "train_time"],
    "activation_max": ["activation_max", "stability/max_activation"],
    "attn_logit_max": ["attn_logit_max", "max_attn_logit"],
    "grad_param_ratio": ["grad_param_ratio"],
    "update_norm": ["update_norm", "optim/update_norm"],
    "seq_len": ["seq_len", "data/seq_len_mean", "batch/mean_length"],
    "token_entropy": ["token_entropy", "data/token_entropy", "batch/token_entropy"],
    "repetition": ["data/repeat_share", "batch/repetition"],
}


@pytest.mark.parametrize(
    ("name", "canonical"), [(n, canonical) for canonical, names in MEANINGS.items() for n in names]
)
def test_a_name_in_use_means_its_series(name: str, canonical: str) -> None:
    role = role_of(name)
    assert role.name == canonical
    assert role.why


@pytest.mark.parametrize(
    "name",
    [
        *("loss_scale", "lg_loss_scale", "skipped", "epoch_time", "n_parameters", "mfu", "lr_loss"),
        *("loss__MIN", "loss__MAX", "best_loss", "loss_weight", "loss_std", "glossary", "closs"),
        *("val_loss", "eval/loss", "perplexity", "loss_spike_count"),
    ],
)
def test_what_only_sounds_like_the_loss_is_not_the_loss(name: str) -> None:
    assert role_of(name).name != "loss"


@pytest.mark.parametrize(
    "name",
    [
        *("mfu", "tps", "dt", "memory", "data_time", "usd", "percentage", "n_parameters"),
        *("epoch_time", "perf/mfu", "train_samples_per_second", "tok/sec", "remaining_time"),
        *("grad_norm__MIN", "loss__MAX", "elapsed time per iteration (ms)", "eval_runtime"),
    ],
)
def test_timing_hardware_and_chart_bounds_are_ignored(name: str) -> None:
    assert role_of(name, "loss").kind == "ignored"


def test_evaluation_never_gives_a_training_series() -> None:
    for name in ("eval/grad_norm", "val_lr", "test_seq_len", "eval_epoch"):
        assert role_of(name, "loss").kind == "other"


def test_clip_fraction_of_gradients_and_of_ppo() -> None:
    assert role_of("train/clip_fraction", "loss").name == "clip_fraction"
    assert role_of("train/clip_fraction", "loss", "train/approx_kl").kind == "other"


@pytest.mark.parametrize("name", ["batch_id", "batch_idx", "data/batch_idx", "shard", "seed"])
def test_index_columns(name: str) -> None:
    assert role_of(name, "loss").kind == "batch_id"


def test_lists_are_ids_of_a_batch_or_histograms() -> None:
    indices: list[object] = [[1, 2], [3, 4], None]
    cells: dict[str, Sequence[object]] = {"step": [1, 2, 3], "loss": COUNT}
    cells |= {"sample_indices": indices, "gradients/fc": indices}
    kinds = {role.column: role.kind for role in understand(table_of(cells)).roles}
    assert kinds["sample_indices"] == "batch_id"
    assert kinds["gradients/fc"] == "ignored"


def test_what_is_logged_of_the_batch_is_a_statistic() -> None:
    role = role_of("data/source_ratio_code", "loss")
    assert (role.kind, role.name) == ("batch_statistic", "other/data/source_ratio_code")
