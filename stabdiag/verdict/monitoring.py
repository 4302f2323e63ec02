"""The minimum monitoring, item by item: what is logged, and what each gap makes undecidable."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stabdiag.findings import MonitorItem
from stabdiag.model import LAYER_METRICS
from stabdiag.rules.monitoring import MISSING_METRIC
from stabdiag.steps.tracks import track
from stabdiag.steps.view import View

COST = {
    "loss": "without it nothing can be said about when it began",
    "grad_norm": "without it a precursor can't be seen: data and optimizer spikes look alike",
    "param_norm": "without it a broken state or a too large update can't be told from a bad batch",
    "lr": "without it a jump or a lost schedule can't be seen",
    "grad_param_ratio": "it follows from the grad norm and the parameter norm",
    "layers": "without per-layer norms no layer can be named",
    "batch": "without data indices or batch statistics the triggering batch can't be found",
    "loss_scale": "needed under fp16 only: without it skipped steps can't be told from a collapse",
    "activation_max": "without it the tensor that overflowed first can't be told",
    "val_loss": "without it overfitting and a data shift look alike",
}

# Points below which a series can't be judged. Every 100 to 200 steps is all that is asked of the
# parameter norm, so few make a run's worth; one validation is one.
_LEAST_POINTS = {"param_norm": 2, "val_loss": 1}


def audit(view: View, layers_every: Mapping[str, int], overflow: float) -> tuple[MonitorItem, ...]:
    """Check the run's log against the minimum monitoring of the handbook.

    Args:
        view: the run.
        layers_every: steps between two rows of each per-layer metric that is logged.
        overflow: probability of that cause. Where it is in question, or the run is in fp16, the
            loss scale and the activation maxima are asked for too.
    """
    items = [_series(view, "loss"), _series(view, "grad_norm"), _param_norm(view, layers_every)]
    items += [_series(view, "lr"), _ratio(view, layers_every)]
    items.append(_series(view, "val_loss"))
    in_question = overflow >= view.limits(MISSING_METRIC, "overflow_in_question")
    precision = _precision(view)
    if view.scale is not None or precision == "fp16" or (in_question and not precision):
        items.append(_series(view, "loss_scale"))
    activations = _activations(view, layers_every)
    if activations.status != "missing" or precision == "fp16" or in_question:
        items.append(activations)
    items.append(_layers(view, layers_every))
    batch = view.run.batch
    items.append(
        MonitorItem("batch", "ok", None, "")
        if batch is not None
        else MonitorItem("batch", "missing", None, COST["batch"])
    )
    return tuple(items)


def _precision(view: View) -> str:
    """What the log itself says the run computed in: "fp16", "other", or "" where it says nothing."""
    said = {name: view.run.facts.get(name, "").lower() for name in ("fp16", "bf16")}
    if view.scale is not None or said["fp16"] == "true":
        return "fp16"
    return "other" if said["bf16"] == "true" else ""


def _series(view: View, name: str) -> MonitorItem:
    t = track(view.run, name)
    if t is None:
        if name == "grad_norm" and "grad_norm_clipped" in view.run.series:
            return MonitorItem(name, "post_clip", None, _post_clip())
        return MonitorItem(name, "missing", None, COST[name])
    if not np.isfinite(t.value).any():
        return MonitorItem(name, "not_finite", t.cadence, "no finite value was logged")
    if name == "grad_norm" and view.post_clip:
        return MonitorItem(name, "post_clip", t.cadence, _post_clip())
    if t.value.size < _LEAST_POINTS.get(name, 20):
        return MonitorItem(
            name, "short", t.cadence, f"only {t.value.size} points: too few to judge"
        )
    every = view.limits(MISSING_METRIC, "param_every") if name == "param_norm" else 1
    if t.cadence > every and name != "val_loss":
        return MonitorItem(name, "sparse", t.cadence, _sparse(name, t.cadence))
    return MonitorItem(name, "ok", t.cadence, "")


def _param_norm(view: View, layers_every: Mapping[str, int]) -> MonitorItem:
    """The handbook asks for that of each weight matrix: it may stand for the one of all."""
    every = layers_every.get("param_norm")
    if view.param is not None or every is None:
        return _series(view, "param_norm")
    if every > view.limits(MISSING_METRIC, "param_every"):
        return MonitorItem("param_norm", "sparse", every, _sparse("param_norm", every))
    return MonitorItem("param_norm", "ok", every, "logged for each layer")


def _layers(view: View, layers_every: Mapping[str, int]) -> MonitorItem:
    """The norms of each layer, and how often each of the two."""
    there = [metric for metric in LAYER_METRICS if view.run.layers.get(metric)]
    if not there:
        return MonitorItem("layers", "missing", None, COST["layers"])
    lacking = [name for name in ("grad_norm", "param_norm") if name not in there]
    if lacking:
        text = f"no {' and no '.join(lacking)} of each layer"
        return MonitorItem("layers", "partial", None, "; ".join((text, *_each(layers_every))))
    limits = {
        "grad_norm": view.limits(MISSING_METRIC, "layer_every"),
        "param_norm": view.limits(MISSING_METRIC, "param_every"),
    }
    sparse = any(layers_every.get(metric, 1) > limit for metric, limit in limits.items())
    return MonitorItem(
        "layers",
        "sparse" if sparse else "ok",
        layers_every.get("grad_norm"),
        ", ".join(_each(layers_every)),
    )


def _each(layers_every: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        f"{metric.replace('_', ' ')} {every_steps(cadence)}"
        for metric, cadence in layers_every.items()
        if metric in ("grad_norm", "param_norm")
    )


def every_steps(cadence: int) -> str:
    """A cadence in words."""
    return "every step" if cadence == 1 else f"every {cadence} steps"


def _activations(view: View, layers_every: Mapping[str, int]) -> MonitorItem:
    name = "activation_max"
    every = layers_every.get(name)
    if every is not None:
        sparse = every > view.limits(MISSING_METRIC, "layer_every")
        text = _sparse(name, every) if sparse else ""
        return MonitorItem(name, "sparse" if sparse else "ok", every, text)
    whole = track(view.run, name)
    if whole is None:
        return MonitorItem(name, "missing", None, COST[name])
    return MonitorItem(name, "partial", whole.cadence, "one maximum for all layers")


def _post_clip() -> str:
    return "logged after clipping: it can show no spike; log what clip_grad_norm_ returns"


def _sparse(name: str, cadence: int) -> str:
    if name in ("loss", "grad_norm"):
        return f"every {cadence} steps: the order of grad norm and loss can't be told within that"
    return f"every {cadence} steps: {COST[name]}"


def _ratio(view: View, layers_every: Mapping[str, int]) -> MonitorItem:
    logged = _series(view, "grad_param_ratio")
    if logged.status == "ok":
        return logged
    if view.grad is not None and view.param is not None:
        return MonitorItem(
            "grad_param_ratio", "ok", view.param.cadence, "derived from the two norms"
        )
    if view.run.layers.get("grad_norm") and view.run.layers.get("param_norm"):
        every = max(layers_every.get(name, 1) for name in ("grad_norm", "param_norm"))
        return MonitorItem("grad_param_ratio", "ok", every, "derived for each layer")
    return logged


def settling(items: tuple[MonitorItem, ...], cause: str) -> tuple[str, ...]:
    """The one or two metrics that would settle a verdict that is not sure, most telling first.

    Source: labelled fault-injection runs, section 3: the parameter norm gains most, then the
    learning rate, then the batch statistics; overflow asks for the loss scale first.
    """
    gaps = {i.metric: i.status for i in items if i.status not in ("ok",)}
    again = " more often" if gaps.get("layers") == "sparse" else ""
    texts = {
        "param_norm": "the parameter norm at every step (a broken state or a too large update "
        "moves it, a bad batch does not)",
        "lr": "the learning rate at every step",
        "grad_norm": "the grad norm before clipping, at every step",
        "batch": "the data indices and statistics of each batch",
        "loss": "the loss at every step",
        "layers": f"grad and parameter norms of each layer{again}",
    }
    wanted = [
        texts[m] for m in ("loss", "grad_norm", "param_norm", "lr", "batch", "layers") if m in gaps
    ]
    if cause == "overflow" and ("loss_scale", "ok") not in {(i.metric, i.status) for i in items}:
        wanted.insert(0, "the loss scale and the activation maxima of each layer")
    if not wanted:
        wanted = [
            "the batch of the onset replayed on the checkpoint before it: the same again is data"
        ]
    return tuple(wanted[:2])
