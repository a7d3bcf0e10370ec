"""Preflight with a mail server, and work items with Beads: used where the user says so."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from interlock.app.coordination import tracker
from interlock.app.coordination.mail import read_inbox
from interlock.app.coordination.outside_mail import MailServerDown
from interlock.app.coordination.preflight import PreflightRequest, run_preflight
from interlock.app.gate.opt_in import opt_in
from interlock.app.gate.trust import trust_checkout
from interlock.core.coordination.records import WorkItem
from interlock.core.coordination.refusals import WorkHeld
from interlock.core.coordination.work_items import WorkDraft, WorkItemUpdate
from interlock.workspace.outside.agent_mail import MailServer, exchange
from tests.app.coordination.team import Team, expect, who
from tests.workspace.outside.fake_agent_mail import FakeMail

STRANGER = "GreenCastle-1735689601"
FAKE_BD = Path(__file__).parents[2] / "workspace" / "outside" / "fake_bd.py"


@pytest.fixture
def mail(home: Path) -> Iterator[FakeMail]:
    with FakeMail() as server:
        (home / "config.toml").write_text(f'[coordination]\nmail_url = "{server.url}"\n')
        yield server


def test_the_mail_server_learns_who_works_and_what_it_holds(team: Team, mail: FakeMail) -> None:
    team.preflight("Ana", "checkout")
    team.reserve("Ana", "src/api/**")
    _exchange_as_stranger(team, mail, reserved=["src/**"])

    report = team.preflight("Ana")

    assert report.mode == "normal"
    assert any(STRANGER in warning for warning in report.warnings), "it says who overlaps there"
    assert "file_reservation_paths" in mail.called


def test_who_is_on_the_mail_server_is_shown_and_its_messages_are_told_once(
    team: Team, mail: FakeMail
) -> None:
    team.clock.at_ms = time.time_ns() // 1_000_000  # the server's
    ana = team.preflight("Ana").identity
    assert ana
    _exchange_as_stranger(team, mail)
    place = {"project_key": str(team.root)}
    letter = {"subject": "[HEARTBEAT] Track docs", "body_md": "- **Track**: docs"}
    mail.mailbox.send_message(sender_name=STRANGER, to=[ana.id], **letter, **place)

    reports = [team.preflight("Ana") for _ in range(2)]

    for report in reports:
        (other,) = report.active_sessions
        assert (other.id, other.track, other.status) == (STRANGER, "docs", "active")
    inbox = read_inbox(team.app, team.desk, who("Ana"))
    assert [(one.message.sender, one.message.subject) for one in inbox] == [
        (f"mail:{STRANGER}", "[HEARTBEAT] Track docs")
    ]


def _exchange_as_stranger(team: Team, mail: FakeMail, *, reserved: Sequence[str] = ()) -> None:
    """Somebody who does not use Interlock registers with the server."""
    exchange(
        MailServer(mail.url),
        project=str(team.root),
        agent=STRANGER,
        program="other",
        task="",
        reserved=reserved,
        released=(),
        since_ms=0,
    )


@pytest.mark.parametrize("mode", ["status_500", "invalid_json", "gone"])
def test_work_goes_on_with_a_warning_while_mail_is_down_and_uses_it_again(
    team: Team, mail: FakeMail, mode: str
) -> None:
    """AC8, DG1, DG2, DG4: the limit of three seconds is tried with the adapter."""
    port = mail.port
    team.join("Bo", "checkout")
    if mode == "gone":
        mail.stop()
    else:
        mail.control(mode)

    report = team.preflight("Ana", "checkout")

    assert report.mode == "degraded"
    assert report.warnings
    assert report.conflicts.track_conflicts, "what is known here is found all the same"
    if mode == "gone":
        back = FakeMail(port=port)
    else:
        mail.control("")
        back = None
    assert team.preflight("Ana").mode == "normal", "it is used again"
    if back:
        back.stop()


def test_who_wants_to_halt_without_mail_is_halted(team: Team, mail: FakeMail, home: Path) -> None:
    """DG3."""
    config = home / "config.toml"
    config.write_text(f'{config.read_text()}mail_down = "halt"\n')
    mail.stop()

    outcome = run_preflight(team.app, team.desk, who("Ana"), PreflightRequest())

    assert isinstance(outcome, MailServerDown)
    assert outcome.explain().code == "mail_down"
    assert team.board().identity_of("ses_Ana"), "PF4: the identity is not lost"


@pytest.fixture
def beads(team: Team, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    opt_in(team.root, "standard")
    trust_checkout(home, team.root, at_ms=1)
    program = tmp_path / "bin" / "bd"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\n{FAKE_BD.read_text()}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (home / "config.toml").write_text("[coordination]\nbeads = true\n")
    return program


def test_what_is_claimed_in_beads_is_claimed_here(team: Team, beads: Path) -> None:
    assert beads.exists()
    (team.root / ".beads").mkdir()
    item = expect(WorkItem, tracker.add(team.app, team.desk, who("Ana"), WorkDraft("do it")))
    assert [one.id for one in tracker.list_work(team.app, team.desk, is_ready=True).items] == [
        item.id
    ]

    expect(WorkItem, tracker.claim(team.app, team.desk, who("Ana"), item.id))

    ana = team.board().identity_of("ses_Ana")
    assert ana
    assert [one.id for one in team.board().claims_of(ana.id)] == [item.id]
    refused = expect(WorkHeld, tracker.claim(team.app, team.desk, who("Bo"), item.id))
    assert ana.id in refused.explain().error
    done = tracker.update(team.app, team.desk, who("Ana"), item.id, WorkItemUpdate("done"))
    assert expect(WorkItem, done).status == "done"
    assert team.board().work == {}


@pytest.mark.parametrize("fault", ["absent", "fail"])
def test_the_own_tracker_is_used_where_beads_fails(
    team: Team, beads: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """DG5; a `bd` that hangs is tried with the adapter."""
    if fault == "absent":
        beads.unlink()
    else:
        monkeypatch.setenv("FAKE_BD", fault)

    item = expect(WorkItem, tracker.add(team.app, team.desk, who("Ana"), WorkDraft("do it")))
    listed = tracker.list_work(team.app, team.desk, is_ready=True)

    assert [one.id for one in listed.items] == [item.id]
    assert "Beads is not used" in listed.warnings[0]
    assert expect(WorkItem, tracker.claim(team.app, team.desk, who("Ana"), item.id)).assignee
