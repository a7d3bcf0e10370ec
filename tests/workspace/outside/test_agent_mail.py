"""The exchange with an Agent Mail server, over real connections."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from interlock.workspace.outside.agent_mail import (
    MailExchange,
    MailServer,
    OutsideMessage,
    exchange,
)
from tests.workspace.outside.fake_agent_mail import FakeMail

PROJECT, ANA, BO = "/work/shop", "BlueLake-1735689600", "GreenCastle-1735689601"


@pytest.fixture
def mail() -> Iterator[FakeMail]:
    with FakeMail() as server:
        yield server


def exchange_as(
    agent: str, url: str, *, timeout_ms: int = 10_000, token: str = "", **more: Any
) -> MailExchange:
    arguments: dict[str, Any] = {"reserved": (), "released": (), "since_ms": 0, **more}
    return exchange(
        MailServer(url, token, timeout_ms),
        project=PROJECT,
        agent=agent,
        program="interlock",
        task="checkout",
        **arguments,
    )


def test_an_agent_registers_with_its_own_id_and_comes_back_with_the_token(mail: FakeMail) -> None:
    first = exchange_as(ANA, mail.url)
    token = first.registration_token
    second = exchange_as(ANA, mail.url, registration_token=token)

    assert token
    assert first == second == MailExchange(is_used=True, registration_token=token, agent_name=ANA)
    assert mail.called == ["ensure_project", "register_agent", "fetch_inbox"] * 2


def test_a_name_that_another_has_is_a_warning_and_nothing_is_reserved_in_it(mail: FakeMail) -> None:
    exchange_as(ANA, mail.url)

    outcome = exchange_as(ANA, mail.url, reserved=["src/**"], released=["docs/**"])

    assert outcome.is_used
    assert outcome.warnings == (
        "The Agent Mail server did not do `register_agent`: Agent 'BlueLake-1735689600' already"
        " exists: registration_token required",
    )
    assert "file_reservation_paths" not in mail.called
    assert "release_file_reservations" not in mail.called


def test_reservations_are_published_and_those_of_others_are_reported(mail: FakeMail) -> None:
    token = exchange_as(ANA, mail.url, reserved=["src/**"]).registration_token
    exchange_as(ANA, mail.url, reserved=["src/**"], registration_token=token)

    outcome = exchange_as(BO, mail.url, reserved=["src/api/**", "docs/**"])

    assert outcome.is_used
    assert outcome.reservation_conflicts == (
        f"`src/api/**` overlaps with `src/**`, which {ANA} holds at the Agent Mail server",
    )


def test_what_is_released_is_in_nobodys_way_any_more(mail: FakeMail) -> None:
    token = exchange_as(ANA, mail.url, reserved=["src/**"]).registration_token
    exchange_as(ANA, mail.url, released=["src/**"], registration_token=token)

    assert exchange_as(BO, mail.url, reserved=["src/api/**"]).reservation_conflicts == ()


def test_messages_are_read_and_only_those_since_the_moment_asked_for(mail: FakeMail) -> None:
    token = exchange_as(ANA, mail.url).registration_token
    exchange_as(BO, mail.url)
    mail.mailbox.send_message(
        project_key=PROJECT,
        sender_name=BO,
        to=[ANA],
        subject="[TRACK COMPLETE] api",
        body_md="It is **done**.",
        thread_id="api",
    )

    (message,) = exchange_as(ANA, mail.url, registration_token=token).messages
    later = exchange_as(
        ANA, mail.url, registration_token=token, since_ms=message.at_ms + 86_400_000
    )

    assert message == OutsideMessage(
        "1", BO, "[TRACK COMPLETE] api", "It is **done**.", message.at_ms, "api"
    )
    assert message.at_ms > 1_700_000_000_000
    assert later.messages == ()


def test_an_answer_in_a_stream_of_events_is_read_though_the_stream_stays_open(
    mail: FakeMail,
) -> None:
    mail.control("stream")

    outcome = exchange_as(ANA, mail.url, reserved=["src/**"])

    assert (outcome.is_used, outcome.warnings) == (True, ())


def test_an_answer_a_millisecond_after_the_deadline_is_not_used(mail: FakeMail) -> None:
    """DG1. The server begins to wait after the client does, so this cannot be in time."""
    assert MailServer("").timeout_ms == 3_000, "DG1 names this default"
    mail.control("delay", delay_ms=301, tool="ensure_project")

    outcome = exchange_as(ANA, mail.url, timeout_ms=300)

    assert outcome == MailExchange(
        is_used=False,
        warnings=("The Agent Mail server did not answer within 0.3 s.",),
        agent_name=ANA,
    )


def test_the_deadline_is_for_all_calls_together(mail: FakeMail) -> None:
    """Each of them would be in time; what came before the deadline is there."""
    mail.control("delay", delay_ms=250)

    outcome = exchange_as(ANA, mail.url, timeout_ms=700, reserved=["src/**"])

    assert not outcome.is_used
    assert outcome.warnings == ("The Agent Mail server did not answer within 0.7 s.",)
    assert "file_reservation_paths" not in mail.called


@pytest.mark.parametrize(
    ("mode", "timeout_ms", "reason"),
    [
        ("hang_mid_body", 300, "did not answer within 0.3 s"),
        ("trickle", 300, "did not answer within 0.3 s"),
        ("status_500", 10_000, "answered with status 500"),
        ("redirect", 10_000, "answered with status 307, and redirects are not followed"),
        ("invalid_json", 10_000, "answered with something else than JSON"),
        ("huge", 10_000, "answered with more than 1 MiB"),
        ("huge_without_length", 10_000, "answered with more than 1 MiB"),
    ],
)
def test_a_server_that_fails_is_a_warning_and_is_used_again_when_it_works(
    mail: FakeMail, mode: str, timeout_ms: int, reason: str
) -> None:
    """DG2."""
    mail.control(mode)

    outcome = exchange_as(ANA, mail.url, timeout_ms=timeout_ms, reserved=["src/**"])

    assert (outcome.is_used, outcome.warnings) == (False, (f"The Agent Mail server {reason}.",))

    mail.control("")
    assert exchange_as(BO, mail.url).is_used


def test_what_came_before_the_failure_is_returned(mail: FakeMail) -> None:
    """The token above all: without it the name is lost."""
    mail.control("status_500", tool="file_reservation_paths")

    outcome = exchange_as(ANA, mail.url, reserved=["src/**"])

    assert not outcome.is_used
    assert outcome.registration_token


def test_a_server_that_is_not_there_is_a_warning_and_is_used_when_it_comes_back() -> None:
    """DG2."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        refused = exchange_as(ANA, f"http://127.0.0.1:{port}/api/")

    with FakeMail(port=port) as server:
        outcome = exchange_as(ANA, server.url)

    assert refused.warnings == ("The Agent Mail server refuses connections.",)
    assert (refused.is_used, outcome.is_used) == (False, True)


def test_a_server_that_takes_no_connection_is_given_up_at_the_deadline() -> None:
    """Its queue is full: connecting hangs."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for client in (first, second):
            client.settimeout(0)
            client.connect_ex(listener.getsockname())

        outcome = exchange_as(ANA, f"http://127.0.0.1:{listener.getsockname()[1]}/", timeout_ms=300)

    assert outcome.warnings == ("The Agent Mail server did not answer within 0.3 s.",)


def test_the_bearer_token_is_sent_and_a_wrong_one_is_a_warning() -> None:
    with FakeMail(token="s3cret") as server:
        right = exchange_as(ANA, server.url, token="s3cret")
        wrong = exchange_as(BO, server.url, token="guess")

    assert right.is_used
    assert wrong.warnings == (
        "The Agent Mail server answered with status 401: it refuses the token.",
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "has no http or https address"),
        ("file:///etc/passwd", "has no http or https address"),
        ("unix:/run/mail.sock", "has no http or https address"),
        ("http://no-such-host.invalid/", "has no address that can be found"),
        ("http://127.0.0.1:99999/", "cannot be used: Port out of range 0-65535"),
    ],
)
def test_an_address_that_cannot_be_used_is_a_warning(url: str, reason: str) -> None:
    outcome = exchange_as(ANA, url)

    assert (outcome.is_used, outcome.warnings) == (False, (f"The Agent Mail server {reason}.",))


def test_a_tool_that_a_server_does_not_have_is_a_warning(mail: FakeMail) -> None:
    """Some versions have no reservations unless they are asked for."""
    mail.control("missing_tool", tool="file_reservation_paths")

    outcome = exchange_as(ANA, mail.url, reserved=["src/**"], released=["docs/**"])

    assert outcome.is_used
    assert outcome.warnings == (
        "The Agent Mail server did not do `file_reservation_paths`: Unknown tool",
    )


def test_a_name_that_the_server_has_changed_is_used_from_then_on(mail: FakeMail) -> None:
    """Some versions drop the dash."""
    mail.control("rename", tool="register_agent")

    outcome = exchange_as(ANA, mail.url, reserved=["src/**"])

    assert (outcome.is_used, outcome.warnings) == (True, ())
    assert outcome.agent_name == ANA.replace("-", "")


def test_what_the_server_says_cannot_control_a_terminal(mail: FakeMail) -> None:
    outcome = exchange_as("Blue\x1b[2J\nLake" * 100, mail.url)
    repeated = exchange_as("Blue\x1b[2J\nLake" * 100, mail.url)

    assert outcome.is_used
    assert all(warning.isprintable() for warning in repeated.warnings)
    assert all(len(warning) < 400 for warning in repeated.warnings)
    assert repeated.warnings
