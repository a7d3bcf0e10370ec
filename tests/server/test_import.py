"""A session goes out of one store by the console and into another, whole or not at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.app.context import App, open_app
from interlock.app.sessions import bundle
from interlock.app.sessions.lookup import check_stream, load_run_graph
from interlock.core.ids import RunId, SessionId
from interlock.core.session import bundle as bundles
from interlock.core.session import chain
from interlock.core.session.chain import ChainLink
from interlock.core.session.events import Envelope, OutputAppended, blob_refs_of, decode_envelope
from interlock.core.session.plan import Stream
from interlock.core.views.graph import GraphNode
from interlock.server.pages.bundles import SHELF_BUNDLES_MAX, SHELF_BYTES_MAX, SHELF_MS, BundleShelf
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.server.conftest import Staged
from tests.server.forms import SignedIn, assert_harmless, call, forms_on, message_of
from tests.server.server_process import Answer, Server
from tests.server.stage import HOSTILE, Stage

SECRET = GITHUB_TOKEN


def downloaded(visitor: SignedIn, session: str) -> bytes:
    return visitor.get(f"/sessions/{session}/export/bundle.json").body


def looked_at(visitor: SignedIn, document: bytes) -> Answer:
    return visitor.upload(visitor.form(visitor.get("/import"), "/import"), "bundle", document)


def imported(visitor: SignedIn, document: bytes) -> SessionId:
    """All the way: choose, look, import."""
    (form,) = [f for f in forms_on(looked_at(visitor, document)) if "/import/" in f.action]
    done = visitor.send(form)
    place = done.headers["location"]
    assert message_of(done) == "imported"
    return SessionId(place.removeprefix("/sessions/"))


def sessions_in(home: Path) -> int:
    app = open_app(home)
    count = app.reader.stats().sessions
    app.close()
    return count


def shape(app: App, run: RunId) -> Any:
    graph = load_run_graph(app, run)
    children = graph.children()

    def of(node: GraphNode) -> Any:
        return (node.kind, node.step_id, node.notes, [of(c) for c in children.get(node.id, [])])

    return [of(root) for root in children[None]]


def contents(app: App, session: SessionId) -> tuple[Any, ...]:
    """What must be the same wherever a session is, whatever names it has there."""
    envelopes = [decode_envelope(link.body) for link in app.reader.links(session)]
    notes = [e.event.notes for e in envelopes if isinstance(e.event, OutputAppended)]
    hashes = [ref for envelope in envelopes for ref in blob_refs_of(envelope.event)]
    graphs = [shape(app, run.run) for run in app.reader.runs(session)]
    return len(envelopes), notes, hashes, graphs


def forged(document: bytes, change: Callable[[Envelope], Envelope]) -> bytes:
    """A bundle with other events, and everything that is computed from them made to fit."""
    content = bundle.verify(document)
    assert not isinstance(content, bundle.BundleBroken)
    end, links = chain.GENESIS, list[ChainLink]()
    for event in content.events:
        links.append(chain.seal(change(decode_envelope(event.body)), end))
        end = links[-1].digest
    blobs = {ref: text.encode() for ref, text in content.blobs.items()}
    return bundles.pack(Stream(content.session), links, blobs, producer=HOSTILE, at_ms=10**17)


def test_an_exported_session_goes_on_in_an_empty_store(
    signed_in: SignedIn, stage: Staged, empty_server: Server
) -> None:
    session = SessionId(stage.sessions["waits"])
    warned = signed_in.get(f"/sessions/{session}/export")
    sent = signed_in.get(f"/sessions/{session}/export/bundle.json")
    other = SignedIn(empty_server)
    page = looked_at(other, sent.body)
    before = sessions_in(empty_server.home)

    new = imported(other, sent.body)

    assert (warned.status, page.status, before) == (200, 200, 0)
    assert sent.headers["content-disposition"] == f'attachment; filename="{session}.json"'
    for said in (
        "Sound",
        "stream instead of loading",
        "ship-a-change 1.2.0",
        session,
        "interlock ",
    ):
        assert said in page.text
    here, there = open_app(stage.home), open_app(empty_server.home)
    assert contents(there, new) == contents(here, session)
    assert check_stream(there.reader, new).state == "healthy"
    assert new != session
    assert f"imported from {session[:12]}" in other.get(f"/sessions/{new}").text
    here.close()
    there.close()
    found = call(empty_server, "resume_session", sessionId=new)["structuredContent"]
    token = found["candidates"][0]["nextCall"]["params"]["continueToken"]
    shown = call(empty_server, "continue_workflow", continueToken=token)["structuredContent"]
    assert shown["kind"] == "approval"
    form = other.form(other.get("/inbox"), f"/approvals/{shown['approval']['id']}")
    assert other.send(form, verdict="granted").status == 303
    after = call(empty_server, "continue_workflow", continueToken=token)["structuredContent"]
    done = call(
        empty_server,
        "continue_workflow",
        continueToken=after["continueToken"],
        output={"notesMarkdown": "Merged."},
    )
    assert done["structuredContent"]["isComplete"]


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (b"", 400, "No file was sent"),
        (b"{}", 400, "it is not a bundle"),
        (b"\xff\xfe", 400, "it is not a bundle"),
    ],
)
def test_what_is_no_bundle_is_refused(
    signed_in: SignedIn, content: bytes, status: int, said: str
) -> None:
    page = looked_at(signed_in, content)

    assert page.status == status
    assert said in page.text


def test_what_is_too_large_is_refused_with_another_way(signed_in: SignedIn) -> None:
    page = looked_at(signed_in, b" " * (16 * 1024 * 1024))

    assert page.status == 413
    assert "16777216 bytes" in page.text


def test_nothing_is_overwritten_and_a_second_click_imports_nothing(
    signed_in: SignedIn, stage: Staged
) -> None:
    session = SessionId(stage.sessions["done"])
    document = downloaded(signed_in, session)
    app = open_app(stage.home)
    before = [link.digest for link in app.reader.links(session)]
    count = app.reader.stats().sessions
    (form,) = [f for f in forms_on(looked_at(signed_in, document)) if "/import/" in f.action]

    first, second = signed_in.send(form), signed_in.send(form)

    assert (first.status, second.status) == (303, 400)
    assert "it was imported, or looked at too long ago" in second.text
    assert app.reader.stats().sessions == count + 1
    assert [link.digest for link in app.reader.links(session)] == before
    app.close()


def test_what_looks_like_a_secret_is_warned_of_on_both_sides_and_not_shown_whole(
    signed_in: SignedIn, stage: Staged, empty_server: Server
) -> None:
    app = open_app(stage.home)
    agent = Stage(app, stage.project)
    answer = agent.start("hello", "Leak something")
    session = answer["introduction"]["session"]
    agent.go_on(answer, f"I used {SECRET} for it")
    app.close()

    leaving = signed_in.get(f"/sessions/{session}/export").text
    arriving = looked_at(SignedIn(empty_server), downloaded(signed_in, session)).text

    for page in (leaving, arriving):
        assert "github-pat" in page
        assert f"{SECRET[:4]}…" in page
        assert SECRET not in page
    assert "Download with what looks secret" in leaving
    harmless = signed_in.get(f"/sessions/{stage.sessions['done']}/export").text
    assert "Nothing in it looks like a secret" in harmless
    assert "Download with" not in harmless


def test_a_hostile_bundle_is_shown_as_words_and_its_times_break_no_page(
    signed_in: SignedIn, stage: Staged, empty_server: Server
) -> None:
    document = forged(
        downloaded(signed_in, stage.sessions["hostile"]),
        lambda envelope: msgspec.structs.replace(envelope, at_ms=10**17),
    )
    visitor = SignedIn(empty_server)

    looked = looked_at(visitor, document)
    session = imported(visitor, document)

    assert_harmless(looked)
    for path in ("/sessions", f"/sessions/{session}", f"/sessions/{session}/export"):
        assert_harmless(visitor.get(path))


@pytest.mark.parametrize(
    "path", ["/sessions/ses_none/export", "/sessions/ses_none/export/bundle.json"]
)
def test_what_is_not_there_cannot_be_exported(signed_in: SignedIn, path: str) -> None:
    assert signed_in.get(path).status == 404


def test_what_was_looked_at_is_kept_for_a_while_and_within_bounds() -> None:
    shelf = BundleShelf()
    names = [shelf.put(bytes([number]), now_ms=0) for number in range(SHELF_BUNDLES_MAX + 1)]
    large = BundleShelf()
    first = large.put(b"a" * (SHELF_BYTES_MAX - 1), now_ms=0)
    second = large.put(b"bb", now_ms=0)

    assert shelf.take(names[0], now_ms=0) is None
    assert shelf.take(names[1], now_ms=SHELF_MS - 1) == b"\x01"
    assert shelf.take(names[1], now_ms=SHELF_MS - 1) is None
    assert shelf.take(names[2], now_ms=SHELF_MS) is None
    assert large.take(first, now_ms=0) is None
    assert large.take(second, now_ms=0) == b"bb"
