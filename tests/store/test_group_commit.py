"""Appends that are written with one sync: what they see of each other, and how they fail."""

from contextlib import closing

import msgspec
import pytest

from interlock.core.session.plan import NodeIndexEntry
from interlock.store.failures import PlanPartlyRecorded, StoreFailure, StreamMoved
from interlock.store.log import Log
from tests.scenes import ROOT, RUN, SESSION, after, noting, opening, random_session
from tests.stores import Place


@pytest.mark.invariant("append-is-whole")
def test_they_see_each_other_at_once_and_others_see_them_in_the_end(place: Place) -> None:
    with closing(place.log()) as log, closing(place.log()) as other:
        first = opening()
        second = noting(after(first), "one", "two")
        with log.group_commit():
            assert log.append(first)
            assert log.append(second)
            assert not log.append(second), "it is there already"
            assert log.stream(SESSION, RUN) == after(second)
            assert other.stream(SESSION) is None

        assert other.stream(SESSION, RUN) == after(second)
        assert log.append(noting(after(second), "goes on"))


@pytest.mark.invariant("append-refuses-stale")
@pytest.mark.invariant("append-refuses-half-known")
def test_what_is_refused_among_them_leaves_the_others_alone(log: Log) -> None:
    first = opening()
    log.append(first)
    sessions = [random_session() for _ in range(2)]
    with log.group_commit():
        assert log.append(opening(sessions[0]))
        assert log.append(noting(after(first), "one"))
        with pytest.raises(StreamMoved):
            log.append(noting(after(first), "stale"))
        with pytest.raises(PlanPartlyRecorded):
            log.append(noting(after(noting(after(first), "one")), "one", "more"))
        assert log.append(opening(sessions[1]))

    assert log.stream(SESSION, RUN) == after(noting(after(first), "one"))
    assert all(log.stream(session) for session in sessions)


@pytest.mark.invariant("together-or-alone")
def test_what_fails_half_way_is_taken_back_and_the_others_are_not(log: Log) -> None:
    """Two nodes of one name: the events were written when that is noticed."""
    first = opening()
    place = NodeIndexEntry(ROOT, 0, "step", None, RUN)
    broken = msgspec.structs.replace(noting(after(first), "half"), nodes=(place, place))
    other = random_session()
    with log.group_commit():
        assert log.append(first)
        with pytest.raises(StoreFailure):
            log.append(broken)
        assert log.append(opening(other))

    assert log.stream(SESSION, RUN) == after(first)
    assert len(list(log.links(SESSION))) == len(first.links)
    assert log.event_with_key(SESSION, broken.keys[0]) is None
    assert log.stream(other)


@pytest.mark.invariant("append-is-whole")
def test_a_mistake_between_them_takes_all_of_them_back(log: Log) -> None:
    class Mistake(Exception):
        pass

    def append_and_fail() -> None:
        with log.group_commit():
            log.append(opening())
            raise Mistake

    with pytest.raises(Mistake):
        append_and_fail()

    assert log.stream(SESSION) is None
    assert log.append(opening())
