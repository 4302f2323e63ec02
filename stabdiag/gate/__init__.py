"""Pass or fail by a policy: `stabdiag gate`."""

from __future__ import annotations

from stabdiag.gate.judge import gate
from stabdiag.gate.policy import load_policy
from stabdiag.gate.records import Gated, Policy

__all__ = ["Gated", "Policy", "gate", "load_policy"]
