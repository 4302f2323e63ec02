"""The JSON schemas that the package ships, as validators."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "stabdiag" / "reporters"


def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return the validator of `<name>.schema.json`, which may refer to that of the report."""
    schemas = {n: json.loads((FOLDER / f"{n}.schema.json").read_text()) for n in ("report", name)}
    resources = [(s["$id"], Resource.from_contents(s)) for s in schemas.values() if "$id" in s]
    return jsonschema.Draft202012Validator(
        schemas[name], registry=Registry().with_resources(resources)
    )
