"""The recorder without what it needs: one clear line. The rest of stabdiag never asks for torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Stands for a Python in which these are not installed.
HIDE = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
"""


def run(code: str, *hidden: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", HIDE.format(hidden=hidden) + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("error", ["ImportError", "stabdiag.errors.StabdiagError"])
def test_without_torch_the_import_says_what_to_install(error: str) -> None:
    code = f"""
import stabdiag.errors
try:
    import stabdiag.recorder
except {error} as err:
    print(err)
"""
    said = run(code, "torch")
    assert said == (
        "stabdiag.recorder needs PyTorch, which is not installed: pip install 'stabdiag[recorder]'"
    )


def test_no_other_module_imports_torch() -> None:
    code = """
import importlib, pathlib, sys, stabdiag
folder = pathlib.Path(stabdiag.__file__).parent
for path in sorted(folder.rglob("*.py")):
    parts = path.relative_to(folder.parent).with_suffix("").parts
    if parts[1] != "recorder" and parts[-1] not in ("__init__", "__main__"):
        importlib.import_module(".".join(parts))
print(sorted(n for n in sys.modules if n.startswith("torch")))
"""
    assert run(code) == "[]"
