"""What an agent's client may do with the secret that it is given."""

import json
from stat import S_IMODE

from interlock.app.access import secret_in
from tests.server.serving import Server


def test_an_agents_secret_opens_its_tools_and_nothing_that_is_the_users(
    empty_server: Server,
) -> None:
    server, secret = empty_server, secret_in(empty_server.home)
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
        )
    ]

    assert called.status == 200
    assert {answer.status for answer in refused} == {403}
    assert (server.home / "agent-secret").read_text() == secret.agent_bearer
    assert S_IMODE((server.home / "agent-secret").stat().st_mode) == 0o600
