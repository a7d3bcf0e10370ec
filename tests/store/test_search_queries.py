"""What the queries of the search let through, on every engine."""

import pytest

from interlock.core import ids
from interlock.core.ids import SessionId
from interlock.core.session.events import OutputAppended, SessionArchived
from interlock.core.session.nodes import output_key
from interlock.core.session.plan import EventDraft, plan
from interlock.store import search_queries
from interlock.store.log import Log
from interlock.store.records import SessionFilter, SessionGroup
from interlock.store.search_queries import newest_streams, outputs_with_words
from tests.scenes import after, random_session, run_in
from tests.store.session_plans import titled

NODE = ids.node_id(bytes.fromhex("abcd000000000001"))


def handed_in(log: Log, notes: str, session: SessionId) -> None:
    """A session whose only step was submitted with these notes."""
    opened = titled(session, "Mend", "")
    log.append(opened)
    attempt = ids.first_attempt(NODE)
    output = OutputAppended(attempt, notes)
    draft = EventDraft(output_key(NODE, attempt), output, run_in(session), NODE)
    log.append(plan(after(opened), (draft,), blobs={}, at_ms=2_000))


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ("The Parser loops", ("pARSer", "LOOPS")),
        ("Größe und ÜBERGRÖSSE", ("größe", "übergrösse")),
        ("Это ЦИКЛ", ("цикл",)),
        ("修复 解析器", ("解析",)),
        ('a "quoted\\path"\n100%_done', ('"quoted\\path"', "100%_done")),
        ("a\0b", ("a\0b",)),
        ("Straße, naïve, ĳ", ("straße", "NAÏVE")),
    ],
)
def test_no_words_that_occur_are_left_out(log: Log, notes: str, words: tuple[str, ...]) -> None:
    handed_in(log, notes, random_session())
    (stream,) = log.ask(newest_streams(is_archived=False, before=None, limit=9))

    (envelope,) = log.ask(outputs_with_words([stream.id], words))
    assert isinstance(envelope.event, OutputAppended)
    assert envelope.event.notes == notes


@pytest.mark.parametrize("words", [("loop", "absent"), ("%absent%",), ("l%p",)])
def test_what_cannot_match_is_left_out_in_the_database(log: Log, words: tuple[str, ...]) -> None:
    handed_in(log, "the loop", random_session())
    (stream,) = log.ask(newest_streams(is_archived=False, before=None, limit=9))

    assert log.ask(outputs_with_words([stream.id], words)) == []
    assert log.ask(outputs_with_words([stream.id + 1], ("loop",))) == []


def test_streams_come_in_the_order_of_their_last_change(log: Log) -> None:
    sessions = [random_session() for _ in range(3)]
    for session in sessions:
        handed_in(log, "x", session)
    first, second, third = log.ask(newest_streams(is_archived=False, before=None, limit=9))

    assert [first.session, second.session, third.session] == sessions[::-1]
    assert first.version == 5
    assert log.ask(newest_streams(is_archived=False, before=first, limit=1)) == [second]
    assert log.ask(newest_streams(is_archived=True, before=None, limit=9)) == []


def test_sessions_are_counted_by_what_lists_are_filtered_by(log: Log) -> None:
    here, archived = random_session(), random_session()
    handed_in(log, "x", here)
    opened = titled(archived, "Mend", "")
    log.append(opened)
    draft = EventDraft("archived", SessionArchived(is_archived=True))
    log.append(plan(after(opened), (draft,), blobs={}, at_ms=3_000))

    def groups(session_filter: SessionFilter) -> list[SessionGroup]:
        return sorted(log.group_sessions(session_filter), key=lambda group: group.updated_ms)

    listed = SessionGroup("open", False, False, "/work", 1, 2_000)  # noqa: FBT003
    aside = SessionGroup("open", False, True, "/work", 1, 3_000)  # noqa: FBT003
    assert groups(SessionFilter(is_archived=None)) == [listed, aside]
    assert groups(SessionFilter()) == [listed]
    assert groups(SessionFilter(is_archived=None, sessions=(archived,))) == [aside]
    assert groups(SessionFilter(needs_user=True)) == []
    assert groups(SessionFilter(needs_user=False)) == [listed]
    assert groups(SessionFilter(sessions=())) == []


def test_the_ends_of_many_streams_are_read_in_one_question(log: Log) -> None:
    session = random_session()
    handed_in(log, "x", session)
    places = [(session, run_in(session)), (random_session(), None), (session, None)]
    with_run, missing, alone = log.ask(search_queries.ends_of_streams(places))

    assert missing is None
    assert with_run
    assert with_run.runs.keys() == {run_in(session)}
    assert alone
    assert alone.runs == {}
    assert log.ask(search_queries.ends_of_streams([])) == []
