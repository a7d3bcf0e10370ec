"""What strangers and agents may do: an agent's secret, and requests made to hurt."""

import json
from stat import S_IMODE

from interlock.app.admin.access import load_secret
from tests.server.server_process import Server
from tests.server.site_server import empty_server

__all__ = ["empty_server"]  # fixtures


def test_an_agents_secret_opens_its_tools_and_nothing_that_is_the_users(
    empty_server: Server,
) -> None:
    server, secret = empty_server, load_secret(empty_server.home)
    agent = {"authorization": f"Bearer {secret.agent_bearer}"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    called = server.ask("POST", "/mcp", body=body, headers=agent, is_signed=False)
    refused = [
        server.ask(method, path, headers=agent, is_signed=False)
        for method, path in (
            ("GET", "/sessions"),
            ("GET", "/api/v2/sessions"),
            ("POST", "/api/v2/approvals/x/grant"),
            ("GET", "/live"),
            ("GET", "/live/notes"),
            ("GET", "/notes"),
        )
    ]

    assert called.status == 200
    assert {answer.status for answer in refused} == {403}
    assert (server.home / "agent-secret").read_text() == secret.agent_bearer
    assert S_IMODE((server.home / "agent-secret").stat().st_mode) == 0o600


def test_a_batch_has_a_bound(empty_server: Server) -> None:
    """Twenty thousand questions of fifty bytes would be answered with half a gigabyte."""
    agent = {"authorization": f"Bearer {load_secret(empty_server.home).agent_bearer}"}
    one = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    body = json.dumps([one] * 51).encode()

    answer = empty_server.ask("POST", "/mcp", body=body, headers=agent, is_signed=False)

    assert answer.status == 400
    assert "More than 50" in answer.json["error"]["message"]


def test_a_form_is_read_as_utf_8_whatever_it_says(empty_server: Server) -> None:
    """Some codecs take minutes for a megabyte, and nobody else is answered meanwhile."""
    for kind in ("multipart/form-data; boundary=B", "application/x-www-form-urlencoded"):
        headers = {"content-type": f"{kind}; charset=punycode", "origin": empty_server.url}
        answer = empty_server.ask("POST", "/auth", body=b"code=x", headers=headers, is_signed=False)
        assert answer.status == 415


def test_a_link_from_elsewhere_leads_on_from_the_front_door(empty_server: Server) -> None:
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "accept": "text/html"}

    answer = empty_server.ask("GET", "/", headers=visit)

    assert (answer.status, 'content="0;url=/now"' in answer.text) == (200, True)
