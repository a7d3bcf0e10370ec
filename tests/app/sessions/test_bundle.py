"""Carrying a session elsewhere: whole or not at all, and it goes on there."""

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.app.callers import session_record
from interlock.app.context import App, open_app
from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.refusals import BundleBroken, NoSuchSession
from interlock.app.runs.advance import advance
from interlock.app.runs.checkpoint import checkpoint
from interlock.app.runs.resume import ResumeQuery, find_resumable_runs
from interlock.app.sessions import bundle
from interlock.app.sessions.bundle import ImportPreview, SessionExport
from interlock.app.sessions.lookup import check_stream, load_run_graph
from interlock.core.ids import NodeId
from interlock.core.protocol.gated_session import Conversation
from interlock.core.session import bundle as bundles
from interlock.core.session import chain
from interlock.core.session.answer import RenderedAnswer
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
from interlock.core.views.graph import GraphNode, RunGraph
from interlock.workspace.git import runner
from tests.effort import scale
from tests.scenes import handed_in, output, shown, started
from tests.sessions import begin_recorded


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[App]:
    other = open_app(tmp_path / "elsewhere")
    yield other
    other.close()


def rich_session(app: App, workspace: Path) -> RenderedAnswer:
    """With a branch, a blocked attempt, a checkpoint, artifacts and context."""
    first = started(app, workspace, steps=4)
    handed_in(app, handed_in(app, first, ""), "mended")
    checkpoint(app, first.answer.continue_token, output("a marker"))
    second = handed_in(app, first, "another way")
    third = advance(
        app,
        second.answer.continue_token,
        output(
            "more",
            {"kind": "report", "value": 1.5},
            {"kind": "gap", "severity": "info", "summary": "x"},
            context={"area": "ünïcode"},
        ),
    )
    assert isinstance(third, RenderedAnswer)
    return third


def exported(app: App, answered: RenderedAnswer) -> SessionExport:
    done = bundle.export(app, answered.session)
    assert isinstance(done, SessionExport)
    return done


def shape(graph: RunGraph) -> Any:
    children = graph.children()

    def of(node: GraphNode) -> Any:
        return (node.kind, node.step_id, node.notes, [of(c) for c in children.get(node.id, [])])

    return [of(root) for root in children[None]]


@pytest.mark.both_stores
@pytest.mark.invariant("bundle-is-whole")
def test_an_imported_session_has_the_same_graph_and_the_same_prompts(
    app: App, elsewhere: App, tmp_path: Path
) -> None:
    last = rich_session(app, tmp_path)
    document = exported(app, last).document

    session = bundle.import_as_new(elsewhere, document)

    assert isinstance(session, str)
    assert session != last.session
    assert check_stream(elsewhere.reader, session).state == "healthy"
    (candidate,) = find_resumable_runs(
        elsewhere.reader,
        elsewhere.keyring,
        ResumeQuery(tmp_path, session=session),
    )
    assert shape(load_run_graph(elsewhere, candidate.row.run)) == shape(
        load_run_graph(app, last.run)
    )
    there = shown(elsewhere, candidate.token)
    assert there.answer.pending == last.answer.pending
    assert handed_in(elsewhere, there).answer.branches == ()


def test_it_can_be_imported_where_it_came_from(app: App, tmp_path: Path) -> None:
    last = rich_session(app, tmp_path)
    document = exported(app, last).document

    sessions = {bundle.import_as_new(app, document) for _ in range(2)}

    assert len(sessions) == 2
    assert app.reader.stats().sessions == 3


def test_no_token_leaves_with_it(app: App, tmp_path: Path) -> None:
    last = rich_session(app, tmp_path)

    assert b"ct1" not in exported(app, last).document


def test_what_looks_like_a_secret_is_listed_and_not_shown_whole(app: App, tmp_path: Path) -> None:
    secret = "ghp_" + "a1" * 18
    last = handed_in(app, started(app, tmp_path), f"used {secret} and password=hunter2hunter2")

    found = exported(app, last).suspects

    assert {suspect.kind for suspect in found} == {"GitHub token", "password"}
    assert all(secret not in suspect.shown for suspect in found)


def test_an_unknown_session_is_not_exported(app: App) -> None:
    assert bundle.export(app, "ses_none") == NoSuchSession("ses_none", ())


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


def test_a_bundle_says_what_would_come_of_it(app: App, tmp_path: Path) -> None:
    last = rich_session(app, tmp_path)
    done = exported(app, last)

    checked = bundle.preview_import(done.document)

    assert isinstance(checked, ImportPreview)
    stream = app.reader.stream(last.session)
    assert stream is not None
    assert stream.head is not None
    assert checked.head == msgspec.structs.replace(stream.head, workspace="")
    assert (checked.session, checked.events) == (last.session, done.events)
    assert checked.producer.startswith("interlock ")


def test_an_imported_session_takes_no_conversation_away(app: App, tmp_path: Path) -> None:
    opt_in(tmp_path, "standard")
    session = begin_recorded(app, tmp_path, Conversation("claude-code", "one")).session
    done = bundle.export(app, session)
    assert isinstance(done, SessionExport)

    imported = bundle.import_as_new(app, done.document)

    assert isinstance(imported, str)
    assert app.reader.session_of_conversation("claude-code", "one") == session
    state = session_record.state_of(app, imported)
    assert isinstance(state, gated_sessions.SessionState)
    assert [found.session for found in state.host_sessions] == ["one"], "it is told all the same"


def test_a_bundle_holds_no_path_of_the_machine_it_comes_from(
    app: App, elsewhere: App, tmp_path: Path
) -> None:
    project, there = tmp_path / "project", tmp_path / "there"
    for directory in (project, there):
        directory.mkdir()
        opt_in(directory, "strict")
    begin_recorded(app, project, Conversation("claude-code", "one"))
    session = handed_in(app, started(app, project), "See /etc/hosts").session

    done = bundle.export(app, session)

    assert isinstance(done, SessionExport)
    assert str(tmp_path) not in done.document.decode()
    assert "See /etc/hosts" in done.document.decode(), "what somebody wrote stays as it is"
    imported = bundle.import_as_new(elsewhere, done.document, there)
    assert isinstance(imported, str)
    state = session_record.state_of(elsewhere, imported)
    assert isinstance(state, gated_sessions.SessionState)
    assert (state.worktree, state.status) == (str(there), "ended")
    assert elsewhere.reader.attended_sessions_in(str(there)) == [], "no call is taken for its own"
