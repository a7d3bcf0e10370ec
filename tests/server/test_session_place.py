"""The place of a request on a session's pages: changes lead back to it, and nowhere else."""

import pytest

from tests.server.conftest import Staged
from tests.server.forms import SignedIn
from tests.server.server_process import Server
from tests.server.site_server import server

__all__ = ["server"]  # fixtures


@pytest.mark.parametrize("query", ["view=//evil", "view=..", "next=//evil", "said=deleted"])
def test_a_change_leads_back_to_a_page_of_the_session_whatever_the_address_says(
    server: Server, stage: Staged, query: str
) -> None:
    signed_in = SignedIn(server)
    path = f"/sessions/{stage.sessions['done']}"
    token = signed_in.form(signed_in.get("/import"), "/import").fields["csrf"]
    done = signed_in.post(f"{path}/unarchive?{query}", {"csrf": token})

    assert done.headers["location"] == path
