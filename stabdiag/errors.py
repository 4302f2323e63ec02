"""What can go wrong for a user: one line that says what and where, one that says what to do."""

from __future__ import annotations


class StabdiagError(Exception):
    """Base of every error that is the user's or the file's, never a fault of the tool (exit 2)."""

    def __init__(self, what: str, todo: str) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo


class InputError(StabdiagError):
    """A log that can't be read or isn't recognised; `what` names the file and the place in it."""


class MissingPackageError(InputError):
    """A log that needs an optional package to be read."""


class UsageError(StabdiagError):
    """A wrong option, configuration key or combination."""


class ManyRunsError(StabdiagError):
    """The log holds several runs and none is evident; `runs` lists their names in file order."""

    def __init__(self, what: str, todo: str, runs: tuple[str, ...]) -> None:
        super().__init__(what, todo)
        self.runs = runs
