"""stabdiag: the post-mortem analyzer for training logs.

`analyze` is the whole job; `read_run` and `stabdiag.diagnose.diagnose` are its two halves.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from stabdiag.findings import Report
    from stabdiag.model import Run
    from stabdiag.settings import Settings

    class ArrowStream(Protocol):
        """What gives itself as an Arrow stream: a Polars frame, a DuckDB relation, an Arrow table."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    LogSource: TypeAlias = str | PathLike[str] | pd.DataFrame | pa.Table | ArrowStream

__version__ = "0.1.0"
__all__ = ["__version__", "analyze", "read_run"]


def read_run(*logs: LogSource, settings: Settings | None = None) -> Run:
    """Read one run from its log: one path, several shards of it, or a table in memory.

    Raises:
        InputError: a log that can't be read or isn't recognised.
        ManyRunsError: the log holds several runs and `settings.run` names none.
        UsageError: the settings name a column, run or threshold that does not exist.
    """
    from stabdiag.opened import open_log, understood
    from stabdiag.readers import read_table
    from stabdiag.settings import Settings

    s = settings if settings is not None else Settings()
    in_memory = len(logs) == 1 and not isinstance(logs[0], str | PathLike)
    opened = understood(read_table(logs[0]), s) if in_memory else open_log(list(map(str, logs)), s)
    return opened.run(s)


def analyze(*logs: LogSource, settings: Settings | None = None) -> Report:
    """Read a log and diagnose the run in it: what `stabdiag analyze LOG` does.

    Args:
        logs: a path, several paths (shards of one run), or one table: pandas, Polars, Arrow, or
            whatever gives itself as an Arrow stream.
        settings: thresholds, columns, run and step range; None for the defaults.

    Raises:
        StabdiagError: as `read_run`.
    """
    from stabdiag.diagnose import diagnose
    from stabdiag.settings import Settings

    run = read_run(*logs, settings=settings)
    return diagnose(run, settings if settings is not None else Settings())
