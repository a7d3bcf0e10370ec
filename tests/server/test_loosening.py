"""What loosens the gate over HTTP is a person's: asked for by real processes of every kind."""

import hashlib
import hmac
import json
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from interlock.app.callers import session_record
from interlock.app.context import open_app
from interlock.app.gate.gate_journal import PEER_CHECK, journal_lines
from interlock.app.gate.opt_in import opt_in
from interlock.core.ids import SessionId
from interlock.core.protocol.gated_session import Conversation
from interlock.server.api import OPERATIONS
from tests.cli.test_loosening import CLIENT
from tests.person import run_as_person
from tests.server.process import Process, typed, until
from tests.server.server_process import FORM
from tests.server.test_actions import changing_routes
from tests.sessions import begin_recorded

pytestmark = [pytest.mark.slow, pytest.mark.invariant("secret-is-not-enough")]

ASK = """
import json, sys
from http.client import HTTPConnection
port, requests = json.load(sys.stdin)
for path, headers, body in requests:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, body, headers)
    reply = connection.getresponse()
    print(json.dumps([reply.status, reply.read().decode()]))
"""
RUN, APPROVAL, GAP = "run_0123456789abcdef", "apr_0123456789", "gap_0123456789"
SESSION = "ses_0123456789abcdef"
LOOSE: dict[str, dict[str, Any]] = {
    "changeMode": {"mode": "coding"},
    "orderWork": {"workflow": "x", "goal": "x", "repository": "/x"},
    "resumeWork": {},
    "steerWork": {"text": "go"},
    "setLimits": {"turns": 500},
    "deliverWork": {},
    "startRun": {
        "workflow": "x",
        "goal": "x",
        "workspace": "/x",
        "preferences": {"autonomy": "full_auto_never_stop"},
    },
    "setPreferences": {"riskPolicy": "aggressive"},
    "unblockRun": {},
    "resolveGap": {"how": "somehow"},
    "grantApproval": {},
    "denyApproval": {"reason": "no"},
    "runTrigger": {},
    "takeOver": {"project": "x", "identity": "x", "force": True},
}
STRICT: dict[str, dict[str, Any]] = {
    "changeMode": {"mode": "planning"},
    "startRun": {"workflow": "x", "goal": "x", "workspace": "/x"},
    "setPreferences": {"autonomy": "guided", "riskPolicy": "conservative"},
    "takeOver": {"project": "x", "identity": "x"},
}
"""Bodies with which the same operations loosen nothing."""
LOOSE_FORM = {"mode": "coding", "risk": "aggressive", "do": "run", "force": "yes", "text": "go"}
STRICT_FORM = {"mode": "analysis", "risk": "conservative", "do": "try"}
ALWAYS_LOOSE_PAGES = {
    "/approvals/{approval}",
    "/sessions/{session}/gaps/{gap}/resolve",
    "/sessions/{session}/runs/{run}/unblock",
    "/sessions/{session}/work/steer",
    "/sessions/{session}/work/limits",
    "/sessions/{session}/work/deliver",
    "/workflows/{id}/unattended",
    "/workflows/sources/add",
    "/workflows/sources/fetch",
}
LOOSE_PAGES = ALWAYS_LOOSE_PAGES | {
    "/sessions/{session}/mode",
    "/sessions/{session}/preferences",
    "/sessions/{session}/work/{control}",
    "/automations/{project}/{name}",
    "/board/takeover",
}
BY_CLAUDE = "wants a person, and it was started by claude"
UNKNOWN = "wants a person, and the process that asks for it is not known"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    home = tmp_path_factory.mktemp("peers") / "interlock"
    with Process(home) as started:
        yield started


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A client that runs the command it is given."""
    program = tmp_path_factory.mktemp("programs") / "claude"
    program.write_text(CLIENT)
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def session(server: Process, tmp_path: Path) -> SessionId:
    """A session in analysis."""
    opt_in(tmp_path, "standard")
    app = open_app(server.home)
    try:
        return begin_recorded(app, tmp_path, Conversation("claude-code", tmp_path.name)).session
    finally:
        app.close()


Request = tuple[str, Mapping[str, str], str]


def asked(
    server: Process,
    requests: Sequence[Request],
    *,
    around: Sequence[str] = (),
    program: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> list[tuple[int, str]]:
    """What a process without a terminal is answered, below `around`."""
    ran = run_as_person(
        [*around, program, "-c", ASK],
        stdin=json.dumps((server.port, requests)),
        environment=environment,
        has_terminal=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines()]


def operation_request(server: Process, name: str, body: Mapping[str, Any]) -> Request:
    (operation,) = (one for one in OPERATIONS if one.name == name)
    names = {"session": SESSION, "run": RUN, "approval": APPROVAL, "gap": GAP}
    path = operation.path.format(**names, project="01234567", name="x")
    headers = {**server.signed(), "content-type": "application/json"}
    return f"/api/v2{path}", headers, json.dumps(body) if operation.body else ""


def mode_request(server: Process, session: str, **headers: str) -> Request:
    sent = {"content-type": "application/json", **(headers or server.signed())}
    return f"/api/v2/sessions/{session}/mode", sent, '{"mode": "coding"}'


def browser(server: Process, cookie: str) -> dict[str, str]:
    """The headers with which a page of the console sends a change to the API."""
    token = server.secret.csrf(cookie)
    cookies = f"interlock_{server.port}={cookie}"
    return {"cookie": cookies, "origin": server.url, "x-csrf-token": token}


def decisions(server: Process) -> list[tuple[str, str, str, str]]:
    lines = (line for line in journal_lines(server.home) if line.event == PEER_CHECK)
    return [(line.host, line.tool, line.answer, line.reason) for line in lines]


def mode_of(server: Process, session: SessionId) -> str:
    app = open_app(server.home)
    try:
        state = session_record.state_of(app, session)
        return state.current_mode
    finally:
        app.close()


def test_every_operation_that_loosens_is_refused_below_an_agent(
    server: Process, claude: str
) -> None:
    loose = [operation_request(server, *pair) for pair in LOOSE.items()]
    strict = [operation_request(server, *pair) for pair in STRICT.items()]

    answers = asked(server, [*loose, *strict], around=[claude])

    assert {one.name for one in OPERATIONS if one.loosens} == set(LOOSE)
    for name, (status, body) in zip(LOOSE, answers, strict=False):
        assert (status, json.loads(body)["code"]) == (403, "needs_person"), name
        assert f"`{name}` {BY_CLAUDE}" in body
    for name, (status, body) in zip(STRICT, answers[len(loose) :], strict=True):
        assert (status in (400, 404), "wants a person" in body) == (True, False), (name, body)


@pytest.mark.parametrize(
    ("control", "fields", "expected"),
    [
        ("pause", LOOSE_FORM, LOOSE_PAGES),
        ("pause", STRICT_FORM, ALWAYS_LOOSE_PAGES),
        ("resume", STRICT_FORM, ALWAYS_LOOSE_PAGES | {"/sessions/{session}/work/{control}"}),
    ],
)
def test_every_form_that_loosens_is_refused_below_an_agent(
    server: Process, claude: str, control: str, fields: dict[str, str], expected: set[str]
) -> None:
    pages = [path for path in changing_routes(server.home) if not path.startswith("/api/")]
    pages = [path for path in pages if path not in ("/mcp", "/auth", "/sign-out")]
    headers = {**server.signed(), **FORM}
    requests = [(path.replace("{control}", control), headers, urlencode(fields)) for path in pages]

    answers = asked(server, requests, around=[claude])

    refused = {
        path
        for path, (status, body) in zip(pages, answers, strict=True)
        if status == 403 and "wants a person, and it was started by claude" in body
    }
    assert refused == expected


def test_who_asks_decides_and_the_secret_does_not(
    server: Process, session: SessionId, claude: str, tmp_path: Path
) -> None:
    client = tmp_path / "codex"
    client.symlink_to(sys.executable)
    request = mode_request(server, session)
    relayed = mode_request(server, session, **server.signed(), via="1.1 proxy")

    below = asked(server, [request], around=[claude])
    itself = asked(server, [request], program=str(client))
    in_shell = asked(server, [request], environment={"CLAUDECODE": "yes"})
    by_proxy = asked(server, [relayed])
    assert mode_of(server, session) == "analysis"
    by_script = asked(server, [request])

    assert by_script[0][0] == 200
    for ((status, why),), evidence in (
        (below, BY_CLAUDE),
        (itself, "it was started by codex"),
        (in_shell, "CLAUDECODE is set"),
        (by_proxy, UNKNOWN),
    ):
        assert (status, evidence in why, "`interlock console`" in why) == (403, True, True)
    assert mode_of(server, session) == "coding"


def test_a_cookie_counts_if_a_person_had_it_made(
    server: Process, session: SessionId, claude: str
) -> None:
    code = typed(server.home, "console", "--print").stdout.strip().partition("#code=")[2]
    headers = {**FORM, "origin": server.url}
    entered = server.plain("POST", "/auth", headers=headers, body=f"code={code}".encode())
    cookie = entered.headers["set-cookie"].partition("=")[2].partition(";")[0]
    persons = mode_request(server, session, **browser(server, cookie))
    # As cookies were made once, by nothing but the secret.
    until_ms = 9_999_999_999_999
    signature = hmac.new(server.secret.value, f"cookie:{until_ms}".encode(), hashlib.sha256)
    forged = browser(server, f"{until_ms}.{signature.hexdigest()}")

    relayed = mode_request(server, session, **browser(server, cookie), via="1.1 proxy")
    (below, why), (pretended, _) = asked(server, [persons, relayed], around=[claude])
    ((leaked, _),) = asked(server, [mode_request(server, session, **forged)])
    assert (below, BY_CLAUDE in why, pretended, leaked) == (403, True, 403, 401)
    assert mode_of(server, session) == "analysis"
    assert by_nobody(server, mode_request(server, session)) == 403
    assert UNKNOWN in decisions(server)[-1][3]
    assert by_nobody(server, persons) == 200
    assert mode_of(server, session) == "coding"


def by_nobody(server: Process, request: Request) -> int:
    """The status that is answered while no process holds the socket: it is on its way to one."""
    path, headers, body = request
    lines = [f"POST {path} HTTP/1.1", f"Host: {server.host}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    before = len(decisions(server))
    client = socket.create_connection(("127.0.0.1", server.port))
    # Nothing is sent before 200 ms have passed, and the socket is out of our hands.
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    client.sendall("\r\n".join([*lines, "", body]).encode())
    sending, receiving = socket.socketpair()
    with sending, receiving:
        socket.send_fds(sending, [b"x"], [client.fileno()])
        client.close()
        until(lambda: len(decisions(server)) > before)
        _, (descriptor,), *_ = socket.recv_fds(receiving, 1, 1)
    with socket.socket(fileno=descriptor) as again:
        return int(again.recv(65_536).split()[1])


def test_each_decision_is_in_the_log_of_the_gate(
    server: Process, session: SessionId, claude: str
) -> None:
    request = mode_request(server, session)
    asked(server, [request], around=[claude])
    asked(server, [request])

    log = json.loads(typed(server.home, "gate", "log", "--json").stdout)[-2:]
    shown = typed(server.home, "gate", "explain", log[0]["id"]).stdout

    assert [(line["host"], line["tool"], line["answer"]) for line in log] == [
        ("server", "changeMode", "deny"),
        ("server", "changeMode", "allow"),
    ]
    assert all(line["atMs"] and "(process " in line["detail"] for line in log)
    assert f"`changeMode` {BY_CLAUDE}" in shown
    assert server.secret.bearer not in (server.home / "spool" / "gate.jsonl").read_text()
