"""The register of the bench: every kind of run, as often as it comes in one round."""

from __future__ import annotations

import kinds_healthy as healthy
import kinds_lasting as lasting
import kinds_timed as timed
from draws import Kind

FAULTY: list[Kind] = [
    timed.corrupt_labels, timed.corrupt_labels, timed.shift_domain, timed.shift_domain,
    timed.bad_random, timed.bad_repeat, timed.bad_long, timed.bad_labels, timed.bad_empty,
    timed.bad_pixels, timed.lr_jump30, timed.lr_jump30, timed.lr_jump100, timed.lr_jump_lasting,
    timed.lr_warm_restart, lasting.lr_high_sgd, lasting.lr_high_adam, lasting.lr_high_mlp,
    lasting.rise_sgd, lasting.rise_adam, lasting.borderline, lasting.adam_no_norms,
    lasting.adam_betas, lasting.adam_late, lasting.layer_lr, timed.bit_flip, timed.bit_flip,
    timed.tensor_lost, timed.tensors_lost, timed.reverted, timed.opt_units, timed.opt_lost,
    timed.nan_where, timed.nan_row, timed.nan_tensor, timed.fp16_gain, timed.fp16_gradient,
    timed.fp16_dead, timed.fp16_prob, lasting.init_head, lasting.init_group, lasting.init_all,
    lasting.init_embedding, lasting.init_matrix, lasting.attention_growth, lasting.layer_input,
    lasting.layer_gain, lasting.head_gain, lasting.wd_sign, lasting.wd_sign_later,
    lasting.wd_small, lasting.wd_large, lasting.dead_sigmoid, lasting.dead_postln,
    lasting.tiny_init,
]  # fmt: skip
# These show in the norms of the weights or of single layers, at times nowhere else.
QUIET: set[Kind] = {
    lasting.init_embedding,
    lasting.init_matrix,
    lasting.layer_lr,
    lasting.layer_input,
    lasting.layer_gain,
    lasting.wd_sign,
    lasting.wd_sign_later,
    lasting.wd_small,
}
GROUPS: dict[Kind, tuple[str, int]] = {
    lasting.borderline: ("stochastic", 5),
    lasting.init_group: ("systematic", 4),
}
HEALTHY_KINDS: list[Kind] = [
    healthy.ok_plain, healthy.ok_plain, healthy.ok_schedule, healthy.ok_schedule,
    healthy.ok_bf16, healthy.ok_fp16, healthy.ok_fp16, healthy.ok_noisy, healthy.ok_heavy,
    healthy.ok_epochs, healthy.ok_blips, healthy.ok_restart, healthy.ok_restart,
    healthy.ok_postln, healthy.ok_curriculum, healthy.ok_lstm, healthy.ok_mlp, healthy.ok_conv,
    healthy.ok_zero, healthy.ok_sgd, healthy.ok_clipped, healthy.ok_deep, healthy.ok_growing,
]  # fmt: skip
