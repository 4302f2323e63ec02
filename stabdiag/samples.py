"""The sample logs: real short runs, beside the package in a checkout, installed with it elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from filecmp import cmp
from importlib import metadata
from pathlib import Path, PurePosixPath

from stabdiag.errors import InputError, UsageError

LOGS = "*.csv", "*.jsonl", "*.parquet", "README.md", "bad_batch_data/*"  # as in pyproject.toml
_INSTALLED = "share/stabdiag/sample_logs"
_CHECKOUT = Path(__file__).resolve().parents[1] / "sample_logs"


def sample_files() -> Mapping[str, Path]:
    """Return where each sample is, by its path among them.

    Raises:
        InputError: they were not installed.
    """
    if (_CHECKOUT / "record").is_dir():
        here = [path for pattern in LOGS for path in sorted(_CHECKOUT.glob(pattern))]
        return {path.relative_to(_CHECKOUT).as_posix(): path for path in here}
    found: dict[str, Path] = {}
    for file in metadata.files("stabdiag") or ():
        before, mark, name = PurePosixPath(file).as_posix().partition(f"{_INSTALLED}/")
        if mark and (not before or before.endswith("/")):
            found[name] = Path(str(file.locate()))
    if not found:
        raise InputError(
            "the sample logs were not installed with stabdiag",
            "Install it as a wheel (pip install stabdiag), or take sample_logs/ of its repository.",
        )
    return found


def write_samples(folder: Path) -> tuple[str, ...]:
    """Write the samples into a folder, made where it is not there; return their names.

    Raises:
        InputError: they were not installed.
        UsageError: something else stands under one of their names, or nothing can be written.
    """
    files = sample_files()
    for name, source in files.items():
        target = folder / name
        if target.exists() and not (target.is_file() and cmp(source, target, shallow=False)):
            raise UsageError(
                f"{target} is there already, and is not the sample log of that name",
                "Name another folder: stabdiag demo FOLDER.",
            )
    try:
        for name, source in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                part = target.with_name(f"{target.name}.part")
                shutil.copyfile(source, part)
                part.replace(target)
    except OSError as err:
        raise UsageError(
            f"{folder}: the sample logs can't be written: {err.strerror}",
            "Name another folder: stabdiag demo FOLDER.",
        ) from err
    return tuple(files)
