"""The weight table: what each sign says for and against each cause, in nats (log-odds)."""

from __future__ import annotations

from stabdiag.findings import CAUSES

CLASSES = (*CAUSES, "none")

PRIOR: dict[str, float] = {
    "optimizer": 0.5,
    "data": 0.0,
    "overflow": -0.5,
    "initialization": -0.5,
    "weight_decay": -0.5,
    "architecture": -0.5,
    "state_corruption": -0.5,
    "vanishing": -1.0,
    "none": 3.0,
}

WEIGHTS: dict[str, dict[str, float]] = {
    "loss_event": {"none": -5.0},
    "loss_explodes": {"optimizer": 1.5, "data": -1.0, "none": -1.0},
    "one_step": {"data": 1.0},
    "slow_decay": {"optimizer": 0.7, "state_corruption": 0.7},
    "new_level": {"data": 1.0},
    "grad_growth": {"overflow": 1.5, "optimizer": 1.0, "none": -4.0},
    "odd_batch": {"data": 3.0, "none": -3.0},
    "grad_leads": {"optimizer": 1.0, "overflow": 0.5, "data": -2.5},
    "same_step": {"data": 0.3},
    "lone_blips": {"optimizer": 2.5, "data": -2.0},
    "grad_trend": {"optimizer": 2.0, "data": -0.5},
    "quiet_grad": {"data": 1.5},
    "lr_jump": {"optimizer": 4.0, "none": -1.0},
    "lr_steady": {"data": 0.3, "optimizer": -0.3},
    "schedule_reset": {"state_corruption": 5.0, "none": -4.0},
    "rise_at_restart": {"state_corruption": 4.0, "none": -4.0},
    "drop_at_restart": {"data": 4.0, "none": -4.0},
    "at_restart": {"state_corruption": 2.5},
    "recurrent": {"optimizer": 2.0, "data": -1.0},
    "diverged": {"optimizer": 0.5, "none": -3.0},
    "plateau": {"vanishing": 2.5, "none": -3.0},
    "batch_outlier": {"data": 3.0},
    "batch_usual": {"data": -0.7},
    "zero_loss": {"data": 6.0, "none": -5.0},
    "lone_nan": {"data": 5.0, "none": -5.0},
    "bad_from_start": {"overflow": 3.0, "none": -6.0},
    "climb_to_nan": {"optimizer": 3.5, "none": -6.0},
    "cold_nan": {"overflow": 4.5, "none": -6.0},
    "scale_collapse": {"overflow": 5.0, "none": -6.0},
    "near_fp16_limit": {"overflow": 2.0},
    "vanishing_depth": {"vanishing": 3.5, "none": -1.5},
    "dominant_layer": {"architecture": 3.5, "none": -3.0},
    "layer_parts": {"architecture": 3.0, "optimizer": 1.0, "none": -3.0},
    "tensor_jump_few": {"state_corruption": 4.0, "none": -2.0},
    "tensor_jump_many": {"state_corruption": 2.0, "optimizer": 1.5, "data": -3.0},
    "tensors_quiet": {"data": 1.0, "state_corruption": -2.0},
    "layers_all_up": {"data": 0.5},
    "layers_uneven": {"optimizer": 1.0, "state_corruption": 1.0},
    "param_jump": {"state_corruption": 2.0, "optimizer": 1.5, "data": -3.0, "none": -1.0},
    "param_quiet": {"data": 1.5, "state_corruption": -2.0},
    "param_keeps_growing": {"weight_decay": 2.5, "none": -2.0},
    "param_exponential": {"weight_decay": 3.0, "none": -2.0},
    "ratio_high": {"optimizer": 0.5},
    "initial_transient": {"initialization": 4.0, "none": -4.0},
    "initial_loss_high": {"initialization": 2.0, "none": -1.0},
    "param_shrinks": {"initialization": 1.5},
    "initial_imbalance": {"initialization": 3.0, "none": -2.5},
}
