"""Which column is which series: aliases, layers, the step column; each choice says why."""

from stabdiag.columns.describe import ColumnLine, describe
from stabdiag.columns.records import ColumnPlan, ColumnRole
from stabdiag.columns.understand import understand

__all__ = ["ColumnLine", "ColumnPlan", "ColumnRole", "describe", "understand"]
