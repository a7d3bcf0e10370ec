"""Bundles that were changed on the way, or made up: they are refused, and nothing is imported."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.context import App, open_app
from interlock.app.refusals import BundleBroken
from interlock.app.runs.resume import ResumeQuery, find_resumable_runs
from interlock.app.sessions import bundle
from interlock.core.ids import NodeId
from interlock.core.session import bundle as bundles
from interlock.core.session import chain
from interlock.core.session.bundle import BundleContent
from interlock.core.session.events import (
    Envelope,
    HostBound,
    NodeCreated,
    ObservationRecorded,
    SessionArchived,
    decode_envelope,
)
from interlock.core.session.plan import Stream
from interlock.workspace.git import runner
from tests.app.sessions.test_bundle import exported, rich_session
from tests.effort import scale
from tests.scenes import started


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    base = tmp_path_factory.mktemp("bundle")
    app = open_app(base / "home")
    done = exported(app, rich_session(app, base))
    app.close()
    return done.document


@pytest.mark.invariant("bundle-is-whole")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scale(200))
@given(st.data())
def test_any_flipped_byte_is_noticed(document: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(document) - 1))
    flipped = bytearray(document)
    flipped[at] ^= data.draw(st.integers(1, 255))

    verified = bundle.verify(bytes(flipped))

    changed_what_does_not_matter = (
        at < document.index(b'"content"')
        or b'"exportedAtMs"' in (document[max(0, at - 40) : at + 40])
    )
    harmless = isinstance(verified, BundleContent) and (
        verified == bundle.verify(document) or changed_what_does_not_matter
    )
    assert isinstance(verified, BundleBroken) or harmless


def parts(document: bytes) -> dict[str, Any]:
    return json.loads(document)


def verify(changed: dict[str, Any]) -> str:
    broken = bundle.verify(msgspec.json.encode(changed))
    assert isinstance(broken, BundleBroken)
    return broken.part


@pytest.mark.invariant("bundle-is-whole")
def test_a_dropped_added_or_altered_part_is_named(document: bytes) -> None:
    ref = next(iter(parts(document)["content"]["blobs"]))

    dropped = parts(document)
    del dropped["content"]["blobs"][ref]
    assert verify(dropped) == f"blobs/{ref}"

    dropped_from_both = parts(document)
    del dropped_from_both["content"]["blobs"][ref]
    del dropped_from_both["integrity"][f"blobs/{ref}"]
    assert verify(dropped_from_both) == f"blobs/{ref}"

    added = parts(document)
    added["content"]["blobs"]["sha256:00"] = "more"
    assert verify(added) == "blobs/sha256:00"

    altered = parts(document)
    altered["content"]["blobs"][ref] += " "
    assert verify(altered) == f"blobs/{ref}"

    shortened = parts(document)
    shortened["content"]["events"].pop()
    assert verify(shortened) == f"events/{len(parts(document)['content']['events']) - 1}"

    renamed = parts(document)
    renamed["content"]["session"] = "ses_other"
    assert verify(renamed) == "session"


@pytest.mark.invariant("bundle-is-whole")
def test_a_manifest_that_was_made_to_fit_does_not_help(document: bytes) -> None:
    """The chain and the names of the blobs hold as well."""
    changed = parts(document)
    ref = next(iter(changed["content"]["blobs"]))
    changed["content"]["blobs"][ref] += " "
    text: str = changed["content"]["blobs"][ref]
    changed["integrity"][f"blobs/{ref}"] = hashlib.sha256(text.encode()).hexdigest()

    assert verify(changed) == f"blobs/{ref}"


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b"null"])
def test_what_is_not_a_bundle_is_refused_and_nothing_is_imported(app: App, content: bytes) -> None:
    refused = bundle.import_as_new(app, content)

    assert isinstance(refused, BundleBroken)
    assert refused.part == "bundle"
    assert app.reader.stats().sessions == 0


def rechained(document: bytes, change: Callable[[list[Envelope]], None]) -> bytes:
    """Other events, and everything that is computed from them made to fit."""
    content = bundle.verify(document)
    assert isinstance(content, BundleContent)
    envelopes = [decode_envelope(event.body) for event in content.events]
    change(envelopes)
    end, links = chain.GENESIS, list[chain.ChainLink]()
    for seq, envelope in enumerate(envelopes):
        links.append(chain.seal(msgspec.structs.replace(envelope, seq=seq), end))
        end = links[-1].digest
    blobs = {ref: text.encode() for ref, text in content.blobs.items()}
    return bundles.pack(Stream(content.session), links, blobs, producer="x", at_ms=1)


def made(envelopes: list[Envelope]) -> int:
    """The last node that an attempt made."""
    kinds = ("step", "blocked")
    return max(
        number
        for number, found in enumerate(envelopes)
        if isinstance(found.event, NodeCreated) and found.event.node_kind in kinds
    )


def makes_a_node_twice(envelopes: list[Envelope]) -> None:
    at = made(envelopes)
    envelopes.append(msgspec.structs.replace(envelopes[at], key="node:again"))


def makes_two_nodes_of_one_attempt(envelopes: list[Envelope]) -> None:
    again = msgspec.structs.replace(
        envelopes[made(envelopes)], key="node:again", node=NodeId("node_0000000000000000")
    )
    envelopes.append(again)


def makes_a_node_without_a_name(envelopes: list[Envelope]) -> None:
    at = made(envelopes)
    envelopes.append(msgspec.structs.replace(envelopes[at], key="node:again", node=None))


def is_bound_before_it_is_attended(envelopes: list[Envelope]) -> None:
    event = HostBound("claude-code", "talk", "startup")
    bound = msgspec.structs.replace(envelopes[0], key="attended:1", event=event)
    envelopes.append(bound)


def has_an_orphan(envelopes: list[Envelope]) -> None:
    orphan = envelopes.pop(made(envelopes))
    event = msgspec.structs.replace(orphan.event, parent=NodeId("node_0000000000000000"))
    envelopes.append(msgspec.structs.replace(orphan, event=event))


def has_no_beginning(envelopes: list[Envelope]) -> None:
    del envelopes[:-1]


def has_no_run(envelopes: list[Envelope]) -> None:
    del envelopes[1:]


@pytest.mark.invariant("bundle-is-whole")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (makes_a_node_twice, "it makes no node, or one that was made before"),
        (makes_two_nodes_of_one_attempt, "the attempt that made it has made another node"),
        (makes_a_node_without_a_name, "it makes no node, or one that was made before"),
        (is_bound_before_it_is_attended, "no gate watched over the session then"),
        (has_an_orphan, "its parent was never made"),
        (has_no_beginning, "a session is created once, by its first event"),
        (has_no_run, "no run ever began"),
    ],
)
def test_a_chain_that_is_sound_and_tells_nonsense_is_refused_before_anything_is_recorded(
    app: App, document: bytes, change: Callable[[list[Envelope]], None], reason: str
) -> None:
    nonsense = rechained(document, change)

    refused = bundle.import_as_new(app, nonsense)

    last = len(parts(nonsense)["content"]["events"]) - 1
    part = "events" if change is has_no_run else f"events/{last}"
    assert refused == BundleBroken(part, reason)
    assert bundle.preview_import(nonsense) == refused
    assert app.reader.stats().sessions == 0


def test_a_commit_from_a_bundle_is_never_an_option_of_git(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q", "-b", "main"], check=True)
    plain = exported(app, started(app, tmp_path)).document
    calls, real = list[tuple[str, ...]](), runner.run_git

    def run_git(directory: Path, *arguments: str, **options: Any) -> Any:
        calls.append(arguments)
        return real(directory, *arguments, **options)

    monkeypatch.setattr(runner, "run_git", run_git)

    def commands_with(commit: str) -> list[str]:
        def forge(envelopes: list[Envelope]) -> None:
            at = next(
                n for n, one in enumerate(envelopes) if isinstance(one.event, ObservationRecorded)
            )
            seen = ObservationRecorded("main", commit)
            envelopes[at] = msgspec.structs.replace(envelopes[at], event=seen)

        session = bundle.import_as_new(app, rechained(plain, forge), tmp_path)
        assert isinstance(session, str), session
        query = ResumeQuery(tmp_path, session=session)
        assert find_resumable_runs(app.reader, app.keyring, query)
        return [word for call in calls for word in call if commit in word]

    assert commands_with("0" * 40), "git is asked about a commit"
    assert commands_with("--output=PWNED") == []


@pytest.mark.slow
def test_a_long_session_can_be_carried_elsewhere_and_keeps_its_times(
    app: App, document: bytes
) -> None:
    def lengthen(envelopes: list[Envelope]) -> None:
        archived = msgspec.structs.replace(envelopes[0], event=SessionArchived(is_archived=False))
        for number in range(9_000):
            envelopes.append(msgspec.structs.replace(archived, key=f"archived:{number}"))
        envelopes[:] = [msgspec.structs.replace(one, at_ms=12_345) for one in envelopes]

    long = rechained(document, lengthen)
    session = bundle.import_as_new(app, long)

    assert isinstance(session, str), session
    links = list(app.reader.links(session))
    assert len(links) == len(parts(long)["content"]["events"]) > 9_000
    assert {decode_envelope(link.body).at_ms for link in links} == {12_345}
