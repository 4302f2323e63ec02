"""Which names mean which series: one line an alias group, the preferred names first.

Sources: the log formats of Hugging Face Trainer, Lightning, W&B, TensorBoard, Megatron-LM, fairseq,
nanoGPT and its kin, llm.c, torchtitan, OpenMMLab, Detectron2, Coqui, AlgoPerf, guided-diffusion,
Stable-Baselines3, RLlib, verl, NeMo, Keras, timm and DeiT. Names are in the form of
`names.words`: lower case, words joined by "_", without prefixes such as "train/" or "optim/".
"""

from __future__ import annotations

from dataclasses import dataclass

from stabdiag.columns.records import Reading, RoleKind


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True)
class Alias:
    """A canonical name, the kind of its role, and the names that mean it, preferred first."""

    canonical: str
    kind: RoleKind
    names: str
    reading: Reading = "as_logged"


# Where a log has both norms, these are the ones before clipping.
BEFORE_CLIPPING = (
    "grad_norm_pre_clip grad_norm_preclip grad_norm_before_clip grad_norm_unclipped "
    "unclipped_grad_norm pre_clip_grad_norm raw_grad_norm grad_norm_raw"
)
ALIASES = (
    Alias(
        "loss",
        "metric",
        "loss lm_loss total_loss loss_total avg_train_loss reduced_train_loss average_loss "
        "avg_loss step_loss batch_loss running_loss tr_loss trl "
        "per_token_loss token_loss objective lm_loss_value mlm_loss ce_loss cross_entropy_loss "
        "cross_entropy nll_loss nll xent_loss xent ctc_loss mse_loss loss_net loss_1 loss_gen "
        "gen_loss g_loss loss_g generator_loss loss_0 pg_loss policy_loss policy_gradient_loss "
        "actor_loss model_loss loss_train_total global_avg_loss loss_per_nonpadding_target_token",
    ),
    Alias("val_loss", "metric", "vloss tel"),
    Alias(
        "grad_norm",
        "metric",
        f"{BEFORE_CLIPPING} "
        "grad_norm gradient_norm gnorm grad_gnorm gradnorm total_grad_norm grad_norm_total "
        "grad_norm_all global_grad_norm grad_norm_global grad_global_norm gradient_global_norm "
        "global_gradient_norm gradients_global_norm grads_global_norm gradients_total_norm "
        "grads_total_norm total_gradient_norm gradient_norm_total l2_norm_grad_global "
        "gradient_2norm grad_l2 grad_l2_norm l2_grad_norm gradient_l2_norm grads_norm "
        "gradients_norm grads_all grads_total gradients_all gradients_total grad_all grad_total "
        "total_norm global_norm norm grad_norm_1 grad_norm_0 model_grad_norm critic_grad_norm",
    ),
    Alias(
        "grad_norm_clipped",
        "metric",
        "grad_norm_clipped clipped_grad_norm grad_norm_post_clip grad_norm_after_clip "
        "post_clip_grad_norm grad_norm_clip clipped_norm clipped_gradient_norm",
    ),
    Alias(
        "param_norm",
        "metric",
        "param_norm params_norm parameter_norm parameters_norm weight_norm weights_norm "
        "total_param_norm param_norm_total param_norm_all params_norm_all params_norm_total "
        "global_param_norm param_norm_global model_param_norm model_norm l2_norm weight_l2 "
        "param_l2_norm weight_norm_total weight_norm_all total_weight_norm",
    ),
    Alias(
        "lr",
        "metric",
        "lr learning_rate learnrate current_learning_rate current_lr cur_lr curr_lr lr_current "
        "base_lr effective_lr",
    ),
    Alias(
        "loss_scale",
        "metric",
        "loss_scale amp_scaler scaler_scale grad_scale grad_scaler loss_scaler amp_scale "
        "dynamic_loss_scale loss_scaling",
    ),
    Alias("loss_scale", "metric", "lg_loss_scale log2_loss_scale", "power_of_two"),
    Alias(
        "skipped",
        "metric",
        "skipped number_of_skipped_iterations skipped_iterations num_skipped skipped_steps "
        "step_skipped optimizer_step_skipped is_skipped found_inf grad_overflow overflow",
    ),
    Alias(
        "skipped",
        "metric",
        "optimizer_applied optimizer_step_applied step_applied update_applied",
        "inverted",
    ),
    Alias("nan_count", "metric", "number_of_nan_iterations nan_iterations nan_count num_nan nans"),
    Alias(
        "grad_param_ratio",
        "metric",
        "grad_param_ratio grad_to_param_ratio gp_ratio g_p_ratio grad_weight_ratio "
        "grad_param_norm_ratio",
    ),
    Alias(
        "update_norm",
        "metric",
        "update_norm updates_norm total_update_norm update_norm_total update_norm_all "
        "param_update_norm step_norm update_l2",
    ),
    Alias(
        "activation_max",
        "metric",
        "activation_max max_activation activations_max act_max max_act max_abs_activation "
        "activation_absmax act_absmax activation_max_all max_logit max_logits logit_max",
    ),
    Alias(
        "attn_logit_max",
        "metric",
        "attn_logit_max max_attn_logit attn_logits_max max_attn_logits attention_logit_max "
        "max_attention_logit attention_logits_max max_attention_logits attn_max_logit",
    ),
    Alias(
        "clip_fraction",
        "metric",
        "clip_fraction clip_frac clipfrac grad_clip_fraction fraction_clipped clip_rate "
        "grad_clipped clip",
    ),
    Alias(
        "step",
        "step",
        "trainer_global_step global_step iteration iter step steps current_steps num_updates "
        "updates update current_step total_timesteps timesteps_total num_timesteps timesteps "
        "total_steps_done training_iteration iterations iters s batch",
    ),
    Alias("epoch", "epoch", "epoch epochs current_epoch cur_epoch epoch_num epoch_idx"),
    Alias(
        "tokens",
        "tokens",
        "tokens tokens_seen num_input_tokens_seen consumed_tokens num_tokens total_tokens "
        "tokens_processed seen_tokens n_tokens num_tokens_seen consumed_samples "
        "consumed_train_samples time_token samples samples_seen examples_seen num_samples",
    ),
    Alias(
        "wall_time",
        "time",
        "wall_time timestamp runtime time_elapsed elapsed_time total_time elapsed relative_time "
        "train_time training_time time",
    ),
    Alias(
        "seq_len",
        "batch_statistic",
        "seq_len seq_len_mean mean_seq_len mean_length sequence_length avg_seq_len seqlen "
        "mean_sequence_length sequence_length_mean length_mean avg_length average_length",
    ),
    Alias(
        "token_entropy",
        "batch_statistic",
        "token_entropy entropy_tokens unigram_entropy token_distribution_entropy",
    ),
    Alias(
        "repetition",
        "batch_statistic",
        "repetition repeat_share repetition_rate repetition_share repetition_ratio repeat_rate "
        "repeated_share repeat_fraction repeat_ratio duplicate_share repetition_fraction",
    ),
    Alias(
        "batch_id",
        "batch_id",
        "batch_id batch_idx batch_index batch_ids batch_number sample_id sample_ids sample_idx "
        "sample_indices sample_index data_index data_indices data_idx data_indexes data_start "
        "data_end data_index_start data_index_end first_index last_index index_start index_end "
        "indices shard shard_id shard_idx doc_id doc_ids example_ids example_id file_id chunk_id "
        "dataset_index seed data_seed document_ids shard_offset data_offset sample_offset "
        "start_index end_index sample_start sample_end",
    ),
    Alias(
        "run", "run", "run run_id run_name experiment experiment_name exp_name exp trial trial_id"
    ),
    Alias("row_kind", "ignored", "row_kind mode split phase stage subset kind"),
)

# Timing, hardware, progress and cost: numbers that say nothing about stability.
NOT_METRICS = _set(
    "mfu hfu tps dt memory data_time iter_time time_per_step step_time batch_time usd cost eta "
    "percentage progress n_parameters num_parameters parameter_count epoch_time score_time "
    "remaining_time throughput train_step_timing_in_s step_timing max_steps total_steps "
    "total_iterations num_epochs total_epochs max_epochs tok_sec memory_gib peak_memory "
    "step_avg unnamed_0 index rank world_size hostname elapsed_time_per_iteration_ms "
    "elapsed_time_per_iteration_s samples_per_second steps_per_second total_flos "
    "tokens_per_second train_runtime best_loss best_val_loss"
)
NOT_METRIC_BEGINNINGS = ("system_", "memory_", "gpu_", "timing_", "timers_", "cpu_")
NOT_METRIC_ENDINGS = (
    "_per_second",
    "_per_sec",
    "_per_s",
    "_per_gpu",
    "_duration",
    "_runtime",
    "_eta",
    "_mfu",
    "tflops",
    "_flops",
    "_tok_sec",
    "_timing_in_s",
)
# A word that turns "...loss..." into something else than a loss.
NOT_A_LOSS = _set(
    "scale scaler scaling weight weights coef coeff coefficient lr count counter num best min max "
    "spike spikes std var variance ratio delta skipped nan inf norm grad spread threshold "
    "perplexity ppl time ema_decay alpha beta lambda rank"
)
# Parts that Ultralytics logs without their total.
DETECTION_PARTS = _set(
    "box_loss cls_loss dfl_loss seg_loss obj_loss pose_loss kobj_loss l1_loss giou_loss iou_loss "
    "om_loss angle_loss rle_loss sem_loss"
)

CANONICAL = tuple(dict.fromkeys(alias.canonical for alias in ALIASES))


@dataclass(frozen=True)
class Match:
    """One alias that a name hit: `order` is its place in the group, 0 the most preferred."""

    canonical: str
    kind: RoleKind
    reading: Reading
    order: int


def _by_name() -> dict[str, Match]:
    table: dict[str, Match] = {}
    for alias in ALIASES:
        for order, name in enumerate(alias.names.split()):
            table.setdefault(name, Match(alias.canonical, alias.kind, alias.reading, order))
    return table


BY_NAME = _by_name()
