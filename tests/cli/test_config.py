"""The configuration: where it is looked for, what it may say, what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabdiag.config import Config, load_config
from stabdiag.errors import UsageError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_no_configuration_says_nothing(folder: Path) -> None:
    assert load_config(None, folder) == Config()


def test_every_key_is_read(folder: Path) -> None:
    write(
        folder / "stabdiag.toml",
        'log = "logs/run.csv"\nspike-threshold = 7\nwindow = 50\nstep-column = "it"\n'
        'steps = "10:90"\nrun = 2\nformat = "json"\nfail-on = "error"\n'
        'require = [3, "loss"]\ncolor = false\nquiet = true\n'
        '[map]\nloss = "train/loss"\n[thresholds]\n"SD101.min_score" = 5\nSD102.min_ratio = 3.5\n',
    )
    assert load_config(None, folder) == Config(
        source="stabdiag.toml",
        log=(str(folder / "logs/run.csv"),),
        spike_threshold=7.0,
        window=50,
        map={"loss": "train/loss"},
        step_column="it",
        steps="10:90",
        run="2",
        format="json",
        fail_on="error",
        require=("3", "loss"),
        color=False,
        quiet=True,
        thresholds={"SD101.min_score": 5.0, "SD102.min_ratio": 3.5},
    )


def test_underscores_are_as_good_as_dashes(folder: Path) -> None:
    write(folder / "stabdiag.toml", 'fail_on = "warning"\n')
    assert load_config(None, folder).fail_on == "warning"


def test_the_nearest_one_upward_wins_and_own_file_beats_pyproject(folder: Path) -> None:
    inner = folder / "a/b"
    inner.mkdir(parents=True)
    write(folder / "pyproject.toml", '[tool.stabdiag]\nrun = "project"\n')
    assert load_config(None, inner).run == "project"
    write(folder / "stabdiag.toml", 'run = "own"\n')
    assert load_config(None, inner).run == "own"
    write(folder / "a/pyproject.toml", "[tool.other]\nx = 1\n")
    assert load_config(None, inner).run == "own"
    write(folder / "a/pyproject.toml", '[tool.stabdiag]\nrun = "near"\n')
    assert load_config(None, inner).run == "near"


def test_the_search_ends_at_the_repository(folder: Path) -> None:
    write(folder.parent / "stabdiag.toml", 'run = "outside"\n')
    assert load_config(None, folder).run is None


def test_a_named_file_is_taken_alone(folder: Path) -> None:
    write(folder / "stabdiag.toml", "window = 50\n")
    other = write(folder / "ci.toml", 'run = "ci"\n')
    assert load_config(other, folder) == Config(source="ci.toml", run="ci")


@pytest.mark.parametrize(
    ("text", "what", "todo"),
    [
        ("spike_treshold = 3\n", "unknown key `spike_treshold`", "`spike-threshold`"),
        ("window = 1.5\n", "`window` is 1.5", "a whole number"),
        ("window = true\n", "`window` is True", "a whole number"),
        ('spike-threshold = "3"\n', "`spike-threshold` is '3'", "a number"),
        ("log = 3\n", "`log` is 3", "a path"),
        ("log = [3]\n", "`log` is [3]", "a path"),
        ("run = []\n", "`run` is []", "a text or a whole number"),
        ("require = [1.5]\n", "`require` is [1.5]", "a list"),
        ("color = 1\n", "`color` is 1", "true or false"),
        ("map = 1\n", "`map` is 1", "a table"),
        ("[map]\nloss = 1\n", "`map` is", "a table"),
        ('[thresholds]\n"SD101.min_score" = "high"\n', "`thresholds` is", "a table"),
        ("[thresholds]\nSD101.a.b = 1\n", "`thresholds` is", "a table"),
        ("window = \n", "is not TOML", "Correct"),
    ],
)
def test_what_is_wrong_is_named(folder: Path, text: str, what: str, todo: str) -> None:
    write(folder / "stabdiag.toml", text)
    with pytest.raises(UsageError) as caught:
        load_config(None, folder)
    assert what in caught.value.what
    assert "stabdiag.toml" in caught.value.what
    assert todo in caught.value.todo


def test_a_file_that_is_no_text_or_no_table(folder: Path) -> None:
    (folder / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_config(folder / "bad.toml", folder)
    write(folder / "pyproject.toml", "[tool]\nstabdiag = 3\n")
    with pytest.raises(UsageError, match="not a table"):
        load_config(None, folder)
