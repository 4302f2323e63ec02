"""Which moved first, the grad norm or the loss, and when a log can't tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.make_runs import F64, Cell, Values, healthy, spike
from tests.traps.said import episode_at, findings, report_of, serious

AT = 300


def spiking(*, lead: int = 0, height: float = 3.0, points: int = 3) -> dict[str, F64]:
    """A loss spike at step 300 whose grad norm rises `lead` steps before."""
    columns = healthy(400)
    spike(columns, "loss", AT, height, points)
    columns["grad_norm"][AT - lead : AT + points] *= 15.0
    return columns


def every(columns: dict[str, F64], name: str, steps: int) -> list[Cell]:
    """The column logged every `steps` rows, its other cells empty."""
    return [v if i % steps == 0 else None for i, v in enumerate(columns[name].tolist())]


def test_the_same_step_is_no_precursor(tmp_path: Path) -> None:
    report = report_of(tmp_path, spiking())
    episode = episode_at(report, AT)
    assert (episode.lead_steps, episode.lead_uncertainty) == (0, 0)
    assert episode.handbook_rule == "data_or_overflow"
    assert "same step" in episode.handbook_reason
    assert report.verdict.cause == "data"


@pytest.mark.parametrize("lead", [1, 3, 8])
def test_a_grad_norm_that_rises_before_reads_optimizer(tmp_path: Path, lead: int) -> None:
    report = report_of(tmp_path, spiking(lead=lead))
    episode = episode_at(report, AT - lead)
    assert (episode.grad_onset_step, episode.loss_onset_step) == (AT - lead, AT)
    assert (episode.lead_steps, episode.lead_uncertainty) == (lead, 0)
    assert episode.handbook_rule == "optimizer"
    assert report.verdict.onset_step == AT - lead


def test_a_lone_grad_spike_well_before_is_no_lead(tmp_path: Path) -> None:
    columns = spiking()
    columns["grad_norm"][AT - 12] *= 15.0
    assert episode_at(report_of(tmp_path, columns), AT).lead_steps == 0


def test_a_loss_spike_with_a_calm_grad_norm_reads_data_or_overflow(tmp_path: Path) -> None:
    columns = healthy(400)
    spike(columns, "loss", AT, 3.0, 3)
    episode = episode_at(report_of(tmp_path, columns), AT)
    assert episode.grad_onset_step is None
    assert episode.handbook_rule == "data_or_overflow"


@pytest.mark.parametrize("name", ["grad_norm", "grad_norm_clipped"])
def test_a_norm_after_clipping_is_no_evidence_of_absence(tmp_path: Path, name: str) -> None:
    columns = healthy(400)
    spike(columns, "loss", AT, 3.0, 3)
    clipped = {k: v for k, v in columns.items() if k != "grad_norm"}
    clipped[name] = np.minimum(2.0 * columns["grad_norm"], 1.0)
    report = report_of(tmp_path, clipped)
    episode = episode_at(report, AT)
    assert episode.handbook_rule == "undecidable"
    assert "after clipping" in episode.handbook_reason
    assert findings(report, "SD701")
    assert next(m.status for m in report.monitoring if m.metric == "grad_norm") == "post_clip"
    said = {e.sign for cause in report.causes for e in cause.evidence}
    assert not said & {"quiet_grad", "same_step", "grad_leads"}


def test_the_same_run_with_the_norm_before_clipping_does_speak(tmp_path: Path) -> None:
    report = report_of(tmp_path, spiking())
    assert not findings(report, "SD701")
    assert episode_at(report, AT).grad_onset_step == AT


def test_a_grad_norm_logged_less_often_widens_the_lead(tmp_path: Path) -> None:
    columns = spiking(lead=3)
    columns["grad_norm"][AT - 3 : AT + 10] = 15.0
    sparse: dict[str, Values] = {**columns, "grad_norm": every(columns, "grad_norm", 10)}
    report = report_of(tmp_path, sparse)
    episode = episode_at(report, AT, reach=10)
    assert episode.lead_uncertainty == 9
    assert episode.handbook_rule == "undecidable"
    said = {e.sign for cause in report.causes for e in cause.evidence}
    assert not said & {"same_step", "grad_leads"}


def test_everything_logged_every_ten_steps_can_show_no_lead_of_two(tmp_path: Path) -> None:
    columns = healthy(400, cadence=10)
    spike(columns, "loss", AT, 3.0, 3)
    columns["grad_norm"][AT - 1 : AT + 3] *= 15.0
    episode = episode_at(report_of(tmp_path, columns), AT * 10, reach=10)
    assert episode.lead_uncertainty == 9
    assert episode.lead_steps in (0, 10)
    said = report_of(tmp_path, columns)
    assert not {e.sign for c in said.causes for e in c.evidence} & {"same_step", "one_step"}


def test_a_loss_averaged_over_a_window_is_found_within_the_window(tmp_path: Path) -> None:
    columns = healthy(4000, noise=0.05)
    spike(columns, "loss", 3005, 6.0, 2)
    mean = columns["loss"].reshape(-1, 10).mean(axis=1)
    log = {"step": columns["step"][9::10], "loss": mean, "grad_norm": columns["grad_norm"][9::10]}
    report = report_of(tmp_path, log)
    assert "SD101" in serious(report)
    assert abs((report.verdict.onset_step or 0) - 3005) <= 10
    episode = episode_at(report, 3009, reach=1)
    assert episode.lead_steps is None or episode.lead_uncertainty == 9


def test_lone_blips_of_the_grad_norm_before_speak_for_the_optimizer(tmp_path: Path) -> None:
    columns = spiking()
    blips = {k: v.copy() for k, v in columns.items()}
    blips["grad_norm"][[AT - 20, AT - 14, AT - 9, AT - 5]] *= 5.0

    def share(report_columns: dict[str, F64], cause: str) -> float:
        ranks = report_of(tmp_path, report_columns).causes
        return next(r.probability for r in ranks if r.cause == cause)

    assert share(blips, "optimizer") > share(columns, "optimizer") + 0.2
    assert share(blips, "data") < share(columns, "data")


def test_a_grad_norm_that_rises_after_the_loss_is_not_said_to_keep_still(tmp_path: Path) -> None:
    columns = healthy(400)
    columns["loss"][250:260] += 0.6 * 1.25 ** np.arange(10.0)
    columns["grad_norm"][254:260] *= 9.0
    report = report_of(tmp_path, columns)
    (episode,) = (e for e in report.episodes if e.loss_onset_step is not None)
    assert episode.grad_onset_step is None
    assert episode.handbook_rule == "data_or_overflow"
    assert episode.handbook_reason == "the loss rose first, the grad norm from step 254 on"


def test_a_calm_point_before_a_lasting_spike_is_no_onset(tmp_path: Path) -> None:
    """Two points before it the median of five is high already, and any point may lie a bit high."""
    columns = healthy(400)
    columns["loss"][AT:] += 3.0 * 0.85 ** np.arange(400.0 - AT)
    columns["loss"][AT - 2] += 0.08
    columns["grad_norm"][AT:] *= 1.0 + 6.0 * 0.85 ** np.arange(400.0 - AT)
    episode = episode_at(report_of(tmp_path, columns), AT)
    assert (episode.loss_onset_step, episode.grad_onset_step) == (AT, AT)
