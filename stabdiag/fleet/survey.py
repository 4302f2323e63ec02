"""The survey: known logs by their content, the others judged by a runner, all rows in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from stabdiag import __version__
from stabdiag.fleet.digest import digest
from stabdiag.fleet.find import Found
from stabdiag.fleet.judge import Job, judge
from stabdiag.fleet.rows import Fleet, FleetRow, ordered
from stabdiag.fleet.runner import Lost, Runner, in_threads
from stabdiag.fleet.state import State

Done = Callable[[int], None]  # told how many logs are done


def survey(found: Sequence[Found], job: Job, runner: Runner, state: State, done: Done) -> Fleet:
    """Judge all logs; those whose content `state` knows are not judged again.

    Where paths are this machine's (`job.folder` is empty), contents are hashed here, else by the
    runner, whose workers are near the storage.

    The result is the same whatever the runner and the order in which it answers.
    """
    logs = [one.log for one in found]
    contents = dict(_digests(logs, job, runner)) if state.path is not None else {}
    rows: dict[str, tuple[FleetRow, ...]] = {}
    for log in logs:
        kept = state.rows(log, contents.get(log, ""))
        if kept is not None:
            rows[log] = kept
    known = len(rows)
    done(known)
    for log, result in runner(partial(judge, job=job), [log for log in logs if log not in rows]):
        if isinstance(result, Lost):
            rows[log] = (FleetRow(log, "", "lost", result.reason),)
        else:
            rows[log] = result
            state.keep(contents.get(log, ""), result)
        done(len(rows))
    left_out = {one.log for one in found if not one.sure and _no_log(rows[one.log])}
    kept_rows = [row for log, its in rows.items() if log not in left_out for row in its]
    return Fleet(__version__, ordered(kept_rows), tuple(sorted(left_out)), known)


def _digests(logs: Sequence[str], job: Job, runner: Runner) -> list[tuple[str, str]]:
    hashed = (runner if job.folder else in_threads)(partial(digest, job=job), logs)
    return [(log, "" if isinstance(result, Lost) else result) for log, result in hashed]


def _no_log(rows: Sequence[FleetRow]) -> bool:
    return all(row.status == "unreadable" for row in rows)
