"""Write every incident's log and `expected.json`: `python -m tests.incidents.make_logs DIR`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.incidents import (
    batches,
    calm,
    dynamics,
    precision,
    quiet,
    records,
    resumes,
    variants,
)  # fmt: skip
from tests.incidents.record import Incident

FAMILIES = (precision, dynamics, resumes, batches, records, variants, quiet, calm)


def incidents() -> list[Incident]:
    """Make every incident, in the order of the families."""
    return [make() for family in FAMILIES for make in family.LOGS]


def write(folder: Path) -> list[Incident]:
    """Write the logs and `expected.json` into `folder`, which is made where it is absent."""
    folder.mkdir(parents=True, exist_ok=True)
    made = incidents()
    for incident in made:
        (folder / incident.file).write_text(incident.text, encoding="utf-8")
    expected = {"schema": 1, "runs": {i.file: i.expectation() for i in made}}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    return made


if __name__ == "__main__":
    print(len(write(Path(sys.argv[1]))), "logs written")
