"""Work on two cores: in order, a bounded number at a time, with the caller's settings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from stabdiag.threads import THREADS, ahead, each


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_results_come_in_the_order_of_the_items(count: int) -> None:
    assert list(each(lambda x: x * x, range(count))) == [x * x for x in range(count)]


def test_no_more_items_are_drawn_than_are_worked_on() -> None:
    drawn, done = [], []

    def items() -> Iterator[int]:
        for number in range(20):
            drawn.append(number)
            assert len(drawn) - len(done) <= THREADS + 1
            yield number

    for made in each(lambda x: x, items()):
        done.append(made)
    assert done == drawn


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_an_error_in_one_is_raised_here(bad: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(each(lambda x: 1 // (x - bad), range(10)))


def test_what_numpy_is_told_to_ignore_is_ignored_in_the_threads(
    recwarn: pytest.WarningsRecorder,
) -> None:
    with np.errstate(all="ignore"):
        found = list(each(lambda x: np.log(np.full(3, x)), [-1.0, 0.0, 1.0]))
    assert np.isnan(found[0]).all()
    assert not recwarn.list


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_items_drawn_ahead_come_in_order_and_one_at_a_time(count: int) -> None:
    drawn, seen = [], []

    def items() -> Iterator[int]:
        for number in range(count):
            drawn.append(number)
            assert len(drawn) - len(seen) <= 2
            yield number

    for item in ahead(items()):
        seen.append(item)
    assert seen == drawn == list(range(count))


def test_an_error_while_drawing_ahead_comes_in_its_place() -> None:
    seen: list[int] = []

    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        seen.extend(ahead(items()))
    assert seen == [1, 2]
