"""The minimum monitoring, item by item: what is logged, and what each gap makes undecidable."""

from __future__ import annotations

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
    "val_loss": "without it overfitting and a data shift look alike",
}

# Points below which a series can't be judged. Every 100 to 200 steps is all that is asked of the
# parameter norm, so few make a run's worth; one validation is one.
_LEAST_POINTS = {"param_norm": 2, "val_loss": 1}


def audit(view: View) -> tuple[MonitorItem, ...]:
    """Check the run's log against the minimum monitoring of the handbook."""
    items = [_series(view, "loss"), _series(view, "grad_norm"), _param_norm(view)]
    items += [_series(view, "lr"), _ratio(view)]
    items.append(_series(view, "val_loss"))
    if view.scale is not None:
        items.append(_series(view, "loss_scale"))
    items.append(_layers(view))
    batch = view.run.batch
    items.append(
        MonitorItem("batch", "ok", None, "")
        if batch is not None
        else MonitorItem("batch", "missing", None, COST["batch"])
    )
    return tuple(items)


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


def _param_norm(view: View) -> MonitorItem:
    """The handbook asks for that of each weight matrix: it may stand for the one of all."""
    if view.param is None and view.run.layers.get("param_norm"):
        return MonitorItem("param_norm", "ok", None, "logged for each layer")
    return _series(view, "param_norm")


def _layers(view: View) -> MonitorItem:
    there = [metric for metric in LAYER_METRICS if view.run.layers.get(metric)]
    if not there:
        return MonitorItem("layers", "missing", None, COST["layers"])
    lacking = [name for name in ("grad_norm", "param_norm") if name not in there]
    if not lacking:
        return MonitorItem("layers", "ok", None, "")
    return MonitorItem("layers", "partial", None, f"no {' and no '.join(lacking)} of each layer")


def _post_clip() -> str:
    return "logged after clipping: it can show no spike; log what clip_grad_norm_ returns"


def _sparse(name: str, cadence: int) -> str:
    if name in ("loss", "grad_norm"):
        return f"every {cadence} steps: the order of grad norm and loss can't be told within that"
    return f"every {cadence} steps: {COST[name]}"


def _ratio(view: View) -> MonitorItem:
    logged = _series(view, "grad_param_ratio")
    if logged.status == "ok":
        return logged
    if view.grad is not None and view.param is not None:
        return MonitorItem(
            "grad_param_ratio", "ok", view.param.cadence, "derived from the two norms"
        )
    if view.run.layers.get("grad_norm") and view.run.layers.get("param_norm"):
        return MonitorItem("grad_param_ratio", "ok", None, "derived for each layer")
    return logged


def settling(items: tuple[MonitorItem, ...], cause: str) -> tuple[str, ...]:
    """The one or two metrics that would settle a verdict that is not sure, most telling first.

    Source: labelled fault-injection runs, section 3: the parameter norm gains most, then the
    learning rate, then the batch statistics; overflow asks for the loss scale first.
    """
    gaps = {i.metric: i.status for i in items if i.status not in ("ok",)}
    texts = {
        "param_norm": "the parameter norm at every step (a broken state or a too large update "
        "moves it, a bad batch does not)",
        "lr": "the learning rate at every step",
        "grad_norm": "the grad norm before clipping, at every step",
        "batch": "the data indices and statistics of each batch",
        "loss": "the loss at every step",
        "layers": "grad and parameter norms of each layer",
    }
    wanted = [
        texts[m] for m in ("loss", "grad_norm", "param_norm", "lr", "batch", "layers") if m in gaps
    ]
    if cause == "overflow" and "loss_scale" not in {i.metric for i in items}:
        wanted.insert(0, "the loss scale and the activation maxima of each layer")
    if not wanted:
        wanted = [
            "the batch of the onset replayed on the checkpoint before it: the same again is data"
        ]
    return tuple(wanted[:2])
