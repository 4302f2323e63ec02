"""Per-layer columns: which metric of which layer a name speaks of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stabdiag.columns.aliases import BY_NAME
from stabdiag.columns.names import EVAL_WORDS, words


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


# Written before the layer: "gradients/transformer.h.0.attn.c_attn.weight".
PREFIXES = {
    "grad_norm": "grad_norm grad_norms gradient_norm gradient_norms gradients gradient grads grad "
    "gradnorm gnorm grad_l2 grad_l2_norm gradients_graph_0 layer_grad_norm "
    "per_layer_grad_norm grad_norm_per_layer layer_grad_norms model_grad_norm l2_norm_grad "
    "norm_grad",
    "param_norm": "param_norm param_norms params_norm parameter_norm parameters params param "
    "parameter weights weight_norm weight_norms weight_l2 layer_param_norm per_layer_param_norm "
    "param_norm_per_layer parameters_graph_0 l2_norm_param norm_param",
    "grad_param_ratio": "grad_param_ratio gp_ratio grad_to_param_ratio grad_weight_ratio "
    "grad_param_ratios",
    "activation_max": "activation_max activations_max act_max max_activation max_activations "
    "activations activation act_absmax activation_absmax activation_mean act_abs_mean "
    "activation_abs_mean acts",
    "update_norm": "update_norm update_norms updates update param_update_norm layer_update_norm "
    "l2_norm_update norm_update",
}
METRIC_OF_PREFIX = {name: metric for metric, names in PREFIXES.items() for name in names.split()}

# Written after the layer: "model.layers.0.mlp.grad_norm", "attn_act_abs_mean".
SUFFIXES = {
    "grad_norm": "grad_norm gradient_norm grad_l2_norm gnorm",
    "param_norm": "param_norm params_norm weight_norm parameter_norm",
    "grad_param_ratio": "grad_param_ratio",
    "activation_max": "activation_max act_max act_absmax act_abs_max activation_absmax "
    "act_abs_mean activation_mean activation_abs_mean act_mean_abs max_activation",
    "update_norm": "update_norm",
}
METRIC_OF_SUFFIX = {name: metric for metric, names in SUFFIXES.items() for name in names.split()}

# What follows a prefix but is a statistic of the whole, no layer.
NOT_A_LAYER = _set(
    "max min mean std var median count scale clip clipped clip_frac clip_fraction clip_coef zeros "
    "num_zeros overflow skipped nan inf ratio noise noise_scale norm all total global overall "
    "global_norm total_norm grad_norm param_norm norm_total cosine variance kurtosis snr pre_clip "
    "post_clip decay accumulation_steps step"
)
_LONGEST_STATISTIC = max(map(len, (*NOT_A_LAYER, *BY_NAME)))
# A statistic written after the layer: "gradients/fc.weight/std" is no norm.
_OTHER_STATISTIC = _set(
    "std var min median rms_std hist histogram kurtosis nan_count inf_count zeros sparsity "
    "fraction_zero"
)
_DOTTED_STATISTIC = _set("max min avg mean std var")
_GROUPS = _set("train training optim optimizer metrics stats debug monitor norms log")
# What stands before "/grad_norm" without being a layer.
_NO_PATH = _GROUPS | NOT_A_LAYER | EVAL_WORDS
_SUFFIX = re.compile(
    r"^(?P<layer>.+?)[./_ ](?P<metric>" + "|".join(sorted(METRIC_OF_SUFFIX, key=len)[::-1]) + r")$",
    re.IGNORECASE,
)


def layer_of(column: str) -> tuple[str, str] | None:
    """The metric and the layer of a per-layer column, the layer as the log names it; else None.

    Total columns such as "grad_norm/all" are no layer; nor are statistics of a layer that are no
    norm, such as "gradients/fc.weight/std".
    """
    return _prefixed(column) or _suffixed(column)


def _prefixed(column: str) -> tuple[str, str] | None:
    for separator in ("/", "."):
        head, found, rest = column.partition(separator)
        prefix = words(head)
        if found and prefix in _GROUPS:
            inner = _prefixed(rest)
            if inner:
                return inner
        # "grad/norm/<layer>" and "l2_norm/grad/<layer>" have their metric in two parts.
        second, found_again, inner_rest = rest.partition("/")
        if separator == "/" and found_again and inner_rest:
            both = words(f"{head}/{second}")
            if both in METRIC_OF_PREFIX:
                return _checked(METRIC_OF_PREFIX[both], both, inner_rest)
        # "grad_2.0_norm/fc" breaks at its first dot: only a slash can end such a prefix.
        if found and rest and prefix in METRIC_OF_PREFIX:
            return _checked(METRIC_OF_PREFIX[prefix], prefix, rest)
    return None


def _checked(metric: str, prefix: str, rest: str) -> tuple[str, str] | None:
    only = words(rest) if len(rest) <= _LONGEST_STATISTIC else ""
    # "grads/norm" is the whole; under "grad_norm/" a layer may well be called norm.
    if only in NOT_A_LAYER and not (only == "norm" and "norm" in prefix):
        return None
    # "update/loss" is the loss of an update: only a prefix that is a norm itself makes it a layer.
    if "norm" not in prefix and (only in BY_NAME or only.endswith("loss")):
        return None
    layer, slash, statistic = rest.rpartition("/")
    if slash:
        last = words(statistic)
        if last in _OTHER_STATISTIC:
            return None
        if last in {"norm", "l2", "l2_norm"} or (
            metric == "activation_max" and last in {"max", "absmax", "abs_max", "mean", "abs_mean"}
        ):
            return metric, layer
        if last in {"max", "mean"}:
            return None
    if rest.rpartition(".")[2] in _DOTTED_STATISTIC:
        return None
    return metric, rest


def without_split_metric(columns: Sequence[str], layers: Sequence[str]) -> list[str]:
    """Layers without the end of "grad/<layer>_norm" or "grad/<layer>.norm".

    The metric is split around them when the prefix has no "norm" of its own and every layer under
    it ends so; a single "gradients/attention_norm" among others is a layer called attention_norm.
    """
    ends: dict[str, bool] = {}
    prefixes = [
        column[: len(column) - len(layer)] for column, layer in zip(columns, layers, strict=True)
    ]
    for prefix, layer in zip(prefixes, layers, strict=True):
        ends[prefix] = ends.get(prefix, True) and layer.endswith(("_norm", ".norm"))
    return [
        layer[: -len("_norm")] if ends[prefix] and prefix and "norm" not in words(prefix) else layer
        for prefix, layer in zip(prefixes, layers, strict=True)
    ]


def _suffixed(column: str) -> tuple[str, str] | None:
    # A dot or slash before the metric is a layer's path; "_" only joins "attn_act_abs_mean".
    match = _SUFFIX.match(column)
    if match is None:
        return None
    metric = METRIC_OF_SUFFIX[match["metric"].lower()]
    layer = match["layer"]
    joined = column[len(layer)] == "_"
    if joined and not (metric == "activation_max" or "." in layer):
        return None
    # "learning/grad_norm" is a norm under a group, "encoder.1/grad_norm" one of a layer.
    if not joined and layer.isalpha():
        return None
    group, slash, rest = layer.partition("/")
    if slash and words(group) in _GROUPS:
        layer = rest
    return (metric, layer) if words(layer) not in _NO_PATH else None
