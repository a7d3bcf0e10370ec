"""Which session a conversation of a client belongs to, as every event log keeps it."""

from interlock.core.session.events import HostBound, ModeChanged, SessionCreated
from interlock.core.session.plan import EventDraft, Plan, Stream, plan
from interlock.store.log import Log
from tests.scenes import after, random_session


def binding(stream: Stream, *conversations: str) -> Plan:
    """A session under a gate, with these conversations of a client."""
    created = (EventDraft("session", SessionCreated("/work")),) if stream.version == 0 else ()
    drafts = (
        *created,
        EventDraft(f"mode:{stream.version}", ModeChanged("analysis", "start", "")),
        *(
            EventDraft(f"bound:{name}:{stream.version}", HostBound("claude-code", name, "startup"))
            for name in conversations
        ),
    )
    return plan(stream, drafts, blobs={}, at_ms=1_000)


def test_a_conversation_belongs_to_the_session_that_bound_it_last(log: Log) -> None:
    first, second = random_session(), random_session()
    at_first = binding(Stream(first), "a", "b")
    log.append(at_first)
    log.append(binding(Stream(second), "a"))
    then = binding(after(at_first))
    log.append(then)

    assert log.session_of_conversation("claude-code", "a") == second, (
        "what else happens in the first is no binding"
    )
    assert log.session_of_conversation("claude-code", "b") == first
    assert log.session_of_conversation("codex", "b") is None
    log.append(binding(after(then), "a"))
    assert log.session_of_conversation("claude-code", "a") == first, "it can go back"
    log.delete(first)
    assert log.session_of_conversation("claude-code", "a") is None
