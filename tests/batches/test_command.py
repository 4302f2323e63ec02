"""`stabdiag batch` as its user sees it: the step, the status, exit codes, pages, JSON."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
from referencing import Registry, Resource

from stabdiag.inspection import BatchInspection
from stabdiag.reporters.batch_report import batch_text
from stabdiag.reporters.view import View
from tests.batches.corpora import (
    BATCH,
    FIRST,
    ONSET,
    documents,
    listed,
    rows,
    write_corpus,
    write_json_lines,
    write_log,
)
from tests.command_line import Command

SAMPLES = Path(__file__).resolve().parents[2] / "sample_logs"
SAMPLE, DATA = SAMPLES / "bad_batch.parquet", SAMPLES / "bad_batch_data"
HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]mark[/bold] <script>alert(1)</script>\r\n\u202e" * 20


def schema(name: str) -> Any:
    return json.loads(files("stabdiag.reporters").joinpath(name).read_text(encoding="utf-8"))


REGISTRY: Registry[Any] = Registry().with_resources(
    [("urn:stabdiag:report:1", Resource.from_contents(schema("report.schema.json")))]
)
VALIDATOR = jsonschema.Draft202012Validator(schema("batch.schema.json"), registry=REGISTRY)


def document(command: Command, *arguments: Any, code: int = 0) -> dict[str, Any]:
    done = command("batch", *arguments, "--format", "json")
    assert done.code == code
    body: dict[str, Any] = json.loads(done.out, parse_constant=pytest.fail)
    VALIDATOR.validate(body)
    return body


@pytest.fixture
def log(folder: Path) -> Path:
    return write_log(folder / "run.jsonl")


def test_a_clean_batch_gives_no_claim(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents())
    body = document(command, log, "--data", corpus, "--fail-on", "info")
    batch = body["batch"]
    assert (batch["status"], body["findings"]) == ("clear", [])
    assert batch["reason"].startswith("no sequence stands out: largest score ")
    assert "of threshold 6" in batch["reason"]
    assert "64 ordinary sequences compared" in batch["reason"]
    assert not any(one["reasons"] for one in batch["sequences"])
    assert not any(one["unusual"] for one in batch["measures"])
    assert f"--step {ONSET - 1}" in batch["next_steps"][0]


def test_the_step_and_why(command: Command, log: Path) -> None:
    batch = document(command, log)["batch"]
    assert batch["step"] == ONSET
    assert f"leave their course at step {ONSET}" in batch["why"]
    assert (batch["status"], batch["ids"]) == (
        "skipped",
        list(map(str, listed(ONSET)["sample_ids"])),
    )
    asked = document(command, log, "--step", 7)["batch"]
    assert (asked["step"], asked["why"]) == (7, "as asked with --step")
    done = command("batch", log, "--step", 7000)
    assert done.code == 2
    assert "step 7000 has no data indices" in done.remarks[0]


def test_the_last_step_with_indices_before_the_onset(command: Command, folder: Path) -> None:
    log = write_log(folder / "run.jsonl", lambda s: listed(s) if s % 7 == 0 else {})
    batch = document(command, log)["batch"]
    assert batch["step"] == ONSET - ONSET % 7
    assert batch["why"].startswith(f"the last step with data indices before step {ONSET}")


def test_ordinary_batches_lie_before_and_apart(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents())
    batch = document(command, log, "--data", corpus, "--ordinary", 5)["batch"]
    steps = batch["ordinary_steps"]
    assert len(steps) == 5
    assert max(steps) < ONSET - 1
    assert batch["ordinary_sequences"] == 5 * BATCH


def test_without_indices_it_says_what_to_log(command: Command, folder: Path) -> None:
    log = write_log(folder / "run.jsonl", lambda s: {})
    corpus = write_corpus(folder, "jsonl", documents())
    batch = document(command, log, "--data", corpus)["batch"]
    assert batch["status"] == "skipped"
    assert "sample_ids" in batch["to_log"][0]
    page = command("batch", log).out
    assert "SKIPPED" in page
    assert "sample_ids" in page
    done = command("batch", log, "--require", "batch")
    assert done.code == 3
    assert "step 2" in done.remarks[0]
    assert command("batch", log, "--require", "loss").code == 0


def test_too_few_ordinary_sequences_are_no_judgement(
    command: Command, folder: Path, log: Path
) -> None:
    corpus = write_corpus(folder, "jsonl", documents({5: "spam eggs " * 60}))
    batch = document(command, log, "--data", corpus, "--ordinary", 2)["batch"]
    assert batch["status"] == "skipped"
    assert batch["reason"] == "too few ordinary sequences to judge: 16 of 20 needed"
    assert not any(one["reasons"] for one in batch["sequences"])
    none = document(command, log, "--data", corpus, "--step", 0)["batch"]
    assert (none["status"], none["ordinary_steps"]) == ("skipped", [])
    assert "no ordinary batch" in command("batch", log, "--data", corpus, "--step", 0).out


def test_statistics_of_the_log_without_a_corpus(command: Command) -> None:
    body = document(command, SAMPLE)
    batch = body["batch"]
    assert (batch["step"], batch["status"]) == (317, "found")
    assert {one["name"] for one in batch["statistics"] if one["score"] > 6} == {
        "token_entropy",
        "repetition",
    }
    assert [one["rule"] for one in body["findings"]] == ["SD201"]
    assert command("batch", SAMPLE, "--fail-on", "warning").code == 1
    quiet = document(command, SAMPLE, "--step", 250)["batch"]
    assert quiet["status"] == "clear"
    assert "as usual" in quiet["reason"]


def test_a_healthy_run_has_no_onset(command: Command, folder: Path) -> None:
    log = write_json_lines(
        folder / "run.jsonl",
        [
            {**r, "loss": 2.0 - r["step"] / 200, "grad_norm": 1 + r["step"] % 3 / 50}
            for r in rows(listed)
        ],
    )
    body = document(command, log)
    assert body["batch"]["step"] is None
    assert body["batch"]["status"] != "found"
    assert "--step N" in body["batch"]["reason"]


def test_analyze_points_at_the_batch(command: Command, log: Path) -> None:
    report = json.loads(command("analyze", log, "--format", "json").out)
    assert f"stabdiag batch {log} --step {ONSET}" in report["next_steps"]


def test_hostile_text_is_shown_harmless(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents({2: HOSTILE}))
    done = command("batch", log, "--data", corpus)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert r"\x1b[31mred\x1b]0;title\x07 [bold]mark" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    first = document(command, log, "--data", corpus)["batch"]["sequences"][0]
    assert first["id"] == str(FIRST + 2)
    assert any("control characters" in reason for reason in first["reasons"])
    assert "\n" not in first["excerpt"]


def test_the_page_fits_a_narrow_terminal(
    command: Command, folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_corpus(folder, "jsonl", documents({2: HOSTILE, 3: "漢字" * 300}))
    seen: list[BatchInspection] = []

    def keep(inspection: BatchInspection, view: View, *, shown: int) -> str:
        seen.append(inspection)
        return batch_text(inspection, view, shown=shown)

    monkeypatch.setattr("stabdiag.cli.batching.batch_text", keep)
    command("batch", log, "--data", corpus)
    narrow = batch_text(seen[0], View(width=40, ascii_only=True), shown=10)
    assert narrow.isascii()
    assert max(map(len, narrow.splitlines())) <= 40
    one = batch_text(seen[0], View(), shown=1)
    assert "and 1 more that stand out" in one


def test_same_bytes_each_time(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents({2: HOSTILE}))
    for name in ("text", "json"):
        first = command("batch", log, "--data", corpus, "--format", name).out
        assert command("batch", log, "--data", corpus, "--format", name).out == first


def test_thresholds_are_settable_and_explained(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents({5: "spam eggs " * 60}))
    (folder / "stabdiag.toml").write_text("[thresholds]\nSD204.min_score = 5000\n")
    body = document(command, log, "--data", corpus)
    assert (body["batch"]["status"], body["findings"]) == ("clear", [])
    assert body["batch"]["thresholds"]["SD204.min_score"] == 5000
    assert "5,000 robust standard deviations" in " ".join(command("explain", "SD204").out.split())


@pytest.mark.parametrize(
    "flags",
    [
        ("--ordinary", -1),
        ("--top", 0),
        ("--batch-size", 0),
        ("--block-size", 0),
        ("--documents", "pages"),
        ("--seed", -1),
        ("--drop-last", "--data", "c.jsonl"),
        ("--order", "random", "--data", "c.jsonl"),
    ],
)
def test_a_wrong_flag_is_said(command: Command, folder: Path, flags: tuple[Any, ...]) -> None:
    log = write_log(folder / "run.jsonl", lambda s: {"batch_id": s})
    write_corpus(folder, "jsonl", documents())
    done = command("batch", log, "--batch-size", BATCH, *flags)
    assert (done.code, done.out) == (2, "")
    assert flags[0] in done.err


def test_the_sample_corpus_is_that_of_its_log() -> None:
    """Length, entropy and repetition of its batches are what the log has, to its digits."""
    log = {row["_step"]: row for row in pq.read_table(SAMPLE).to_pylist()}
    by_step: dict[int, list[bytes]] = {}
    for row in pq.read_table(DATA).to_pylist():
        by_step.setdefault(row["batch_idx"], []).append(row["text"].encode("latin-1"))
    assert set(range(117, 318)) <= set(by_step)
    for step, own in by_step.items():
        counts = np.bincount(np.frombuffer(b"".join(own), dtype=np.uint8))
        share = counts[counts > 0] / counts.sum()
        entropy = -(share * np.log(share)).sum()
        assert entropy == pytest.approx(log[step]["data/token_entropy"], rel=1e-4)
        mean = np.mean([len(one) for one in own])
        assert mean == pytest.approx(log[step]["data/seq_len_mean"], rel=1e-4)


def test_the_bad_batch_of_the_sample(command: Command) -> None:
    body = document(command, SAMPLE, "--data", DATA)
    assert (body["batch"]["step"], body["batch"]["size"]) == (317, 16)
    assert body["batch"]["reason"].startswith("16 of 16 sequences stand out")
    assert {one["rule"] for one in body["findings"]} == {"SD201", "SD204", "SD206"}
    assert all(one["severity"] == "warning" for one in body["findings"])
    quiet = document(command, SAMPLE, "--data", DATA, "--step", 300)["batch"]
    assert quiet["status"] == "clear"
    assert "left out: not in the corpus" in quiet["notes"][0]  # it begins at step 116


def test_the_corpus_is_not_overwritten(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents())
    before = corpus.read_bytes()
    done = command("batch", log, "--data", corpus, "--output", "./c.jsonl")
    assert (done.code, len(done.remarks)) == (2, 2)
    assert corpus.read_bytes() == before
    written = command("batch", log, "--data", corpus, "--output", "page.txt")
    assert written.err == "report written to page.txt\n"
    assert "CLEAR" in (folder / "page.txt").read_text(encoding="utf-8")


def test_an_order_is_for_counted_samples(command: Command, folder: Path, log: Path) -> None:
    corpus = write_corpus(folder, "jsonl", documents())
    done = command("batch", log, "--data", corpus, "--order", "numpy")
    assert done.code == 2
    assert "counted samples" in done.remarks[0]


def test_between_two_logged_points_the_trigger_may_be_another(
    command: Command, folder: Path
) -> None:
    every = [row for row in rows(listed) if row["step"] % 2 == 0]
    batch = document(command, write_json_lines(folder / "run.jsonl", every))["batch"]
    assert batch["why"].endswith("every 2 steps, and the trigger may be a batch in between")


def test_odd_statistics_and_clean_sequences_point_at_another_corpus(
    command: Command, folder: Path
) -> None:
    def ids(step: int) -> dict[str, Any]:
        return {**listed(step), "seq_len": 900 if step == ONSET else 300 + step % 7}

    log = write_log(folder / "run.jsonl", ids)
    corpus = write_corpus(folder, "jsonl", documents())
    body = document(command, log, "--data", corpus)
    assert body["batch"]["status"] == "found"
    assert "check that this is the corpus of the run" in body["batch"]["reason"]
    assert [one["rule"] for one in body["findings"]] == ["SD201"]


def test_text_split_otherwise_says_how_to_say_so(command: Command, folder: Path, log: Path) -> None:
    """One empty line among documents of a line each looks like documents between blank lines."""
    texts = documents()
    texts[5] = ""
    corpus = write_corpus(folder, "lines", texts)
    done = command("batch", log, "--data", corpus)
    assert done.code == 2
    assert "--documents lines" in done.remarks[1]
    assert command("batch", log, "--data", corpus, "--documents", "lines").code == 0
