"""`stabdiag columns`: how each column was understood, and how to say otherwise."""

from __future__ import annotations

from stabdiag.cli.options import Logs, PageOutputOptions, ReadingOptions


def columns(
    logs: Logs = None,
    *,
    reading: ReadingOptions,
    output: PageOutputOptions,
) -> None:
    """How each column was understood, and why.

    Also the runs in the log, and how to say otherwise.
    """
    from pathlib import Path

    from stabdiag.cli.columns_page import columns_json, columns_page
    from stabdiag.cli.logs import remember
    from stabdiag.cli.options import AnalysisOptions
    from stabdiag.cli.output import deliver, view_for
    from stabdiag.cli.reporting import request_of
    from stabdiag.cli.settled import configuration, format_of
    from stabdiag.cli.strict import insist
    from stabdiag.columns import describe
    from stabdiag.opened import open_log
    from stabdiag.reporters import PAGE_FORMATS
    from stabdiag.reporters.layout import laid_out
    from stabdiag.runs import list_runs

    config = configuration(reading)
    name = format_of(output, config, PAGE_FORMATS)
    request = request_of(logs, reading, AnalysisOptions(), output, config)
    opened = open_log([str(log) for log in request.logs], request.settings)
    table, plan = opened.table, opened.plan
    if reading.strict:
        insist([vars(note) for note in (*table.notes, *plan.notes)], request.logs)
    runs = list_runs(table, plan)
    if name == "json":
        text = columns_json(table, plan, runs)
    else:
        color = config.color and not output.no_color
        view = view_for(color=color, to_file=output.output is not None)
        text = laid_out(columns_page(table, plan, describe(table, plan), runs), view)
    deliver(text, output.output)
    remember(request.logs, Path.cwd())
