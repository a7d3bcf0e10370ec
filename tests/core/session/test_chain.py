"""The digest chain: sound streams verify, and no damage goes unseen."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.core import canonical
from interlock.core.session import chain
from interlock.core.session.chain import GENESIS, ChainLink, Health
from interlock.core.session.events import decode_envelope
from tests.scenes import SESSION, after, noting, opening


def stream_of(*notes: str) -> tuple[ChainLink, ...]:
    first = opening()
    return (*first.links, *noting(after(first), *notes).links) if notes else first.links


LINKS = stream_of("one", "two", "three")


def verify(links: tuple[ChainLink, ...]) -> Health:
    return chain.verify(SESSION, links, version=len(LINKS), end=LINKS[-1].digest)


def resealed(links: tuple[ChainLink, ...]) -> tuple[ChainLink, ...]:
    """The same bodies with digests that fit them: damage by somebody who knows the chain."""
    previous, result = GENESIS, list[ChainLink]()
    for link in links:
        previous = chain.digest(previous, link.body)
        result.append(ChainLink(link.seq, link.body, previous))
    return tuple(result)


def test_a_sound_stream_is_healthy() -> None:
    assert verify(LINKS) == Health("healthy", len(LINKS))


@pytest.mark.invariant("chain-shows-damage")
@given(st.data())
def test_any_changed_byte_is_seen_where_it_is(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(LINKS) - 1))
    byte = data.draw(st.integers(0, len(LINKS[at].body) - 1))
    body = bytearray(LINKS[at].body)
    body[byte] ^= data.draw(st.integers(1, 255))
    damaged = (*LINKS[:at], replace(LINKS[at], body=bytes(body)), *LINKS[at + 1 :])

    health = verify(damaged)

    assert (health.state, health.valid) in {
        ("corrupt_tail" if at else "corrupt_head", at),
        ("unknown_version", at),  # the byte was the version
    }


@pytest.mark.invariant("chain-shows-damage")
@pytest.mark.parametrize("at", range(len(LINKS)))
def test_a_missing_event_is_seen(at: int) -> None:
    health = verify((*LINKS[:at], *LINKS[at + 1 :]))

    assert health.valid == at
    assert health.state == ("corrupt_tail" if at else "corrupt_head")


def test_events_after_the_recorded_end_are_seen() -> None:
    longer = stream_of("one", "two", "three", "four")

    assert verify(longer).state == "corrupt_tail"


def test_a_chain_that_was_rebuilt_does_not_end_where_it_should() -> None:
    forged = LINKS[-1].body.replace(b"three", b"THREE")
    rebuilt = resealed((*LINKS[:-1], replace(LINKS[-1], body=forged)))

    assert verify(rebuilt) == Health(
        "corrupt_tail", len(LINKS), "the last digest is not the recorded one"
    )


def test_an_event_of_a_newer_version_is_said_to_be_newer() -> None:
    envelope = msgspec.structs.replace(decode_envelope(LINKS[-1].body), v=2)
    newer = resealed((*LINKS[:-1], replace(LINKS[-1], body=canonical.encode(envelope))))

    assert verify(newer).state == "unknown_version"


def test_an_event_of_another_session_does_not_belong() -> None:
    envelope = msgspec.structs.replace(decode_envelope(LINKS[2].body), session="ses_other")
    strange = resealed((*LINKS[:2], replace(LINKS[2], body=canonical.encode(envelope))))

    assert verify(strange) == Health("corrupt_tail", 2, "event 2 belongs elsewhere")


@pytest.mark.parametrize("length", range(1, len(LINKS) + 1))
def test_the_tail_of_any_sound_stream_is_sound(length: int) -> None:
    links = LINKS[:length]

    health = chain.verify_tail(links[-2:], version=length, end=links[-1].digest)

    assert health == Health("healthy", length)


def test_a_damaged_tail_is_seen_without_the_rest() -> None:
    end = LINKS[-1].digest
    changed = (LINKS[-2], replace(LINKS[-1], body=LINKS[-1].body + b" "))

    assert chain.verify_tail(changed, version=5, end=end).state == "corrupt_tail"
    assert chain.verify_tail(LINKS[-3:-1], version=5, end=end).state == "corrupt_tail"
    assert chain.verify_tail((), version=5, end=end).state == "corrupt_tail"
    assert chain.verify_tail(LINKS[-2:], version=5, end=GENESIS).state == "corrupt_tail"
