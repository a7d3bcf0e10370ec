"""A strict project: the driver meets the start of the protocol, and names what it cannot meet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.gate.opt_in import opt_in
from interlock.app.protocol import gated_sessions
from interlock.app.runs.inbox import list_cards
from interlock.app.sessions import bundle
from interlock.app.sessions.bundle import SessionExport
from interlock.app.unattended import orders
from interlock.app.unattended.tool_gate import denials_of
from interlock.core.ids import SessionId
from interlock.core.session.events import ProtocolStarted
from interlock.core.session.requirements import START_IDS
from interlock.core.session.state import SessionState
from interlock.core.unattended.journal import StepBegun
from interlock.core.unattended.order import UnattendedState
from tests.driver.stage import PLACE, Stage, call, git, one_step
from tests.scenes import linear

WRITE = call("Write", file_path="made.txt", content="made\n")
TRY = call("Bash", command="test -s made.txt")


@pytest.fixture(scope="module")
def strict_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory: Path = tmp_path_factory.mktemp("strict")
    with Stage(directory) as stage:
        opt_in(stage.repository, "strict")
        notes = stage.repository / ".interlock" / "notes"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / "project-constraints.md").write_text("- Never edit the schema by hand.\n")
        stage.install(linear(1, "one"))
        stage.start_driver()
        yield stage


def starts_of(stage: Stage, session: SessionId) -> list[ProtocolStarted]:
    events = [one.event for one in stage.app.reader.history(session)]
    return [event for event in events if isinstance(event, ProtocolStarted)]


def test_a_whole_run_delivers_with_the_evidence_of_its_start(strict_stage: Stage) -> None:
    session = strict_stage.order(workflow="one", script=one_step(WRITE, TRY))

    state = strict_stage.wait_for(session, "done", "parked")

    assert (state.status, state.outcome, state.detail) == ("done", "success", "")
    assert git(strict_stage.repository, "show", f"{state.commit}:made.txt") == "made"
    assert denials_of(strict_stage.home, session) == []
    (start,) = starts_of(strict_stage, session)
    assert start.recorded_profile == "strict"
    assert set(start.evidence) == {*START_IDS}
    assert start.evidence["notOnMain"] == start.evidence["branchVerified"] == state.branch
    assert start.evidence["constraintsRead"].startswith("project-constraints ")
    assert start.evidence["sessionLogCreated"].startswith("skipped: the driver's journal")
    assert not [text for text in start.evidence.values() if text.startswith("open: ")]
    (step,) = [one for one in strict_stage.entries(session) if isinstance(one, StepBegun)]
    assert "## Constraints\n\n- Never edit the schema by hand." in step.message
    app = strict_stage.app
    assert gated_sessions.state_of(app, session).protocol_start_complete
    exported = bundle.export(app, session)
    assert isinstance(exported, SessionExport)
    adopted = bundle.import_as_new(app, exported.document)
    assert isinstance(adopted, str)
    assert gated_sessions.state_of(app, SessionId(adopted)).protocol_start_complete
    assert git(strict_stage.repository, "status", "--porcelain") == ""


def test_read_only_work_runs_commands_in_a_strict_project(strict_stage: Stage) -> None:
    session = strict_stage.order(
        workflow="one", script=one_step(call("Bash", command="wc README.md")), is_read_only=True
    )

    assert strict_stage.wait_for(session, "done", "parked").outcome == "success"

    assert not strict_stage.results(session)[0].result.is_error


def test_a_requirement_that_it_cannot_meet_is_named_until_it_is_waived(
    strict_stage: Stage,
) -> None:
    app, notes = strict_stage.app, strict_stage.repository / ".interlock" / "notes"
    aside = notes.with_name("aside")
    notes.rename(aside)
    notes.symlink_to(aside)
    try:
        session = strict_stage.order(workflow="one", script=one_step(WRITE))
        state = strict_stage.wait_for(session, "done", "parked")

        assert (state.status, state.reason) == ("parked", "protocol")
        assert (
            "brainInit: The notes folder `.interlock/notes` is not in the project" in state.detail
        )
        assert "session waive REQUIREMENT" in state.detail
        (card,) = [one for one in list_cards(app) if session in one.id]
        assert "brainInit" in card.question
        assert strict_stage.model_calls(session) == []

        for name in ("brainInit", "constraintsRead", "memoriesLoaded"):
            waived = gated_sessions.waive_requirement(app, session, name, "no notes", place=PLACE)
            assert isinstance(waived, SessionState)
        resumed = orders.control_work(app, session, "resume", place=PLACE)
        assert isinstance(resumed, UnattendedState)
        state = strict_stage.wait_for(session, "done", "parked")

        assert state.outcome == "success", state.detail
        assert not app.reader.head(session).attended, "a waiver makes it no attended session"
    finally:
        notes.unlink()
        aside.rename(notes)
