"""One line of labels.jsonl: what was done to a run and what came of it."""

from __future__ import annotations

from dataclasses import replace

from cases import Case
from loop import Fault, Record
from naming import spelled
from styles import columns_of
from truth import Truth, against_twin, by_itself
from write_log import layer_columns, logged_rows

_UNLISTED = ("samples", "layer_param_norm")
_SPIKING = ("lr_borderline", "lr_too_high", "adam_instability")


def label_of(case: Case, record: Record, twin: Record | None, file: str) -> dict[str, object]:
    """Return the label of a finished run."""
    fault, style, config = case.fault, case.style, case.config
    truth = _truth(case, record, twin)
    fault, onset = _honest(fault, truth)
    healthy = fault.cause == "none"
    columns = columns_of(style, fp16=config.precision == "fp16")
    label: dict[str, object] = {
        "file": file,
        "id": case.identity,
        "model": config.describe(),
        "fault": fault.name,
        "cause": fault.cause,
        "acceptable": list(fault.acceptable),
        "onset_step": None if healthy else _shown(onset, case),
        "loss_onset_step": None if healthy else _shown(truth.loss_onset, case),
        "grad_onset_step": None if healthy else _shown(truth.grad_onset, case),
        "onset_logged_step": None if healthy else _shown(_next_logged(onset, case), case),
        "layers": _layer_columns(case, record, fault),
        "recovers": None if healthy else truth.recovers,
        "group": case.group,
        "group_kind": case.group_kind,
        "notes": fault.note,
        "layers_in_model": [spelled(name, config.naming) for name in fault.layers],
        "logging": _logging(case, record),
        "columns": {series: name for series, name in columns.items() if series not in _UNLISTED},
    }
    if twin is not None:
        label["visible"] = {"loss": truth.visible_loss, "grad": truth.visible_grad}
        label["effect"] = {
            "loss_sigmas": _digits(truth.loss_sigmas),
            "loss_peak_step": _shown(truth.loss_peak, case),
            "grad_ratio": _digits(truth.grad_ratio),
        }
    return label


def _truth(case: Case, record: Record, twin: Record | None) -> Truth:
    if twin is not None:
        return against_twin(record, twin, case.fault.onset, logged_rows(record, case.style))
    truth = by_itself(record, plateau=2.9 if case.config.is_text else 2.2)
    if case.fault.name in _SPIKING:
        return truth
    return Truth(recovers=truth.recovers, stuck=truth.stuck)


def _honest(fault: Fault, truth: Truth) -> tuple[Fault, int | None]:
    """Return the fault as it really came out, and its onset."""
    if fault.name in _SPIKING and truth.loss_onset is None and not truth.stuck:
        note = f"{fault.note}: this seed got away, no loss spike"
        return replace(fault, name="healthy", cause="none", note=note, layers=()), None
    if fault.cause == "vanishing" and not truth.stuck:
        note = f"{fault.note}: left its plateau, learned in the end"
        others = ("vanishing", *fault.acceptable)
        return replace(fault, cause="none", acceptable=others, note=note, layers=()), None
    if fault.name in _SPIKING and truth.loss_onset is None:  # on a plateau from the start
        fault = replace(fault, acceptable=(*fault.acceptable, "vanishing"))
    if fault.onset < 0:  # arises by itself: where its first spike begins
        return fault, truth.grad_onset or 0
    return fault, fault.onset


def _layer_columns(case: Case, record: Record, fault: Fault) -> list[str]:
    columns = columns_of(case.style, fp16=case.config.precision == "fp16")
    if "layer_grad_norm" not in columns:
        return []
    logged = layer_columns(record, case.style, case.config.naming)
    at_fault = {record.layers.index(name) for name in fault.layers}
    pattern = columns["layer_grad_norm"]
    return [pattern.replace("*", layer) for layer, places in logged.items() if at_fault & {*places}]


def _logging(case: Case, record: Record) -> dict[str, object]:
    style = case.style
    return {
        "variant": style.variant,
        "style": style.style,
        "format": style.format,
        "cadence": style.cadence,
        "loss_averaged": style.averaged,
        "grad_norm": style.grad_norm,
        "layers": style.layers,
        "non_finite": style.non_finite,
        "clip": case.config.clip,
        "rows": len(record.step),
        "first_step_offset": style.first_step,
        "resumed_from": None if case.config.resume is None else case.config.resume[1],
    }


def _next_logged(step: int | None, case: Case) -> int | None:
    cadence = case.style.cadence
    return None if step is None else -(-step // cadence) * cadence


def _shown(step: int | None, case: Case) -> int | None:
    return None if step is None else step + case.style.first_step


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
