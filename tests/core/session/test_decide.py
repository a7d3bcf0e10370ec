"""What starting and advancing decide: values in, plan and answer out."""

from typing import Any

import msgspec
import pytest

from interlock.core import ids
from interlock.core.canonical import Json
from interlock.core.ids import BlobRef, GapId, StepId
from interlock.core.preferences import Preferences
from interlock.core.session import artifacts, decide, head, start_run
from interlock.core.session.answer import AnswerGap, NextCall
from interlock.core.session.attempts import Attempt
from interlock.core.session.decide import AdvanceInputs, PlannedReply
from interlock.core.session.events import (
    ApprovalRequested,
    GapRecorded,
    NodeCreated,
    SessionEvent,
    decode_envelope,
)
from interlock.core.session.evidence import CommandRecord
from interlock.core.session.judge import StepOutput
from interlock.core.session.nodes import Node, node_of
from interlock.core.session.plan import Plan, Stream
from interlock.core.session.refusals import (
    NO_PENDING_STEP,
    NOTES_BYTES_MAX,
    ContextUnset,
    InputRefused,
    RunRefusal,
)
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX, RunHead
from interlock.core.session.start_run import NewRun
from interlock.core.tokens import Token, read_token
from interlock.core.workflow.compiled_workflow import PinnedWorkflow
from interlock.core.workflow.compiler import compile_workflow
from interlock.core.workflow.definition import Workflow
from interlock.core.workflow.examples import NOTES_BLANK
from tests.scenes import KEY, ROOT, RUN, SESSION, after, linear, pinned, refusal_code

ARGUMENTS = BlobRef("sha256:" + "0" * 64)


def changed(*, first: dict[str, Any] | None = None, **fields: Any) -> PinnedWorkflow:
    """A line of two steps with something else in it, or in its first step."""
    workflow: Workflow = msgspec.structs.replace(linear(2), **fields)
    step = msgspec.structs.replace(workflow.steps[0], **(first or {}))
    return compile_workflow(msgspec.structs.replace(workflow, steps=(step, *workflow.steps[1:])))


class Play:
    """A run that is played step by step, without any store."""

    def __init__(self, workflow: PinnedWorkflow | None = None, **given: Any) -> None:
        self.pinned = workflow or pinned(2)
        wanted = NewRun(
            stream=Stream(SESSION),
            run=RUN,
            root=ROOT,
            goal="Try it",
            workspace="/work",
            context=given.get("context", {}),
            preferences=given.get("preferences", Preferences()),
            observation=None,
        )
        self.outcome = start_run.start(wanted, self.pinned, key=KEY, at_ms=1_000)
        self.bodies: list[bytes] = []
        self._keep()

    def hand_in(
        self,
        notes: str = "done",
        *values: Json,
        context: dict[str, Json] | None = None,
        open_gaps: dict[GapId, GapRecorded] | None = None,
    ) -> "Play":
        taken = artifacts.parse_artifacts(values)
        assert isinstance(taken, tuple)
        node = self.node
        known: dict[str, Json] = {"goal": "Try it"}
        around = AdvanceInputs(
            context=known,
            prompt="the prompt",
            open_gaps=open_gaps or {},
            branches=(),
            notes={},
            commands=CommandRecord(),
            observation=None,
            key=KEY,
            at_ms=2_000,
        )
        handed = Attempt(ids.first_attempt(node.id), ARGUMENTS, StepOutput(notes, taken), context)
        self.outcome = decide.advance(self.stream, node, self.pinned.workflow, handed, around)
        self._keep()
        return self

    def _keep(self) -> None:
        if isinstance(self.outcome, PlannedReply):
            self.plan: Plan = self.outcome.plan
            self.bodies += [link.body for link in self.plan.links]

    @property
    def decided(self) -> PlannedReply:
        assert isinstance(self.outcome, PlannedReply), self.outcome
        return self.outcome

    @property
    def refusal(self) -> RunRefusal:
        assert not isinstance(self.outcome, PlannedReply)
        return self.outcome

    @property
    def answer(self) -> Any:
        return self.decided.reply.answer

    @property
    def stream(self) -> Stream:
        return after(self.plan)

    @property
    def run(self) -> RunHead:
        return self.stream.runs[RUN]

    @property
    def node(self) -> Node:
        envelopes = [decode_envelope(link.body) for link in self.plan.links]
        return next(node_of(e) for e in reversed(envelopes) if isinstance(e.event, NodeCreated))

    @property
    def events(self) -> list[SessionEvent]:
        return [decode_envelope(link.body).event for link in self.plan.links]

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def test_starting_gives_the_first_step_and_the_call_that_hands_it_in() -> None:
    answer = Play().answer

    assert (answer.pending.step_id, answer.pending.number, answer.pending.of) == ("step-1", 1, 2)
    assert answer.next_intent == "perform_pending_then_continue"
    assert answer.next_call == NextCall(
        "continue_workflow",
        {"continueToken": answer.continue_token, "output": {"notesMarkdown": NOTES_BLANK}},
    )
    assert read_token(answer.continue_token, {KEY.id: KEY}) == Token(ROOT, ids.first_attempt(ROOT))


def test_starting_records_everything_that_the_run_begins_with() -> None:
    assert Play().kinds == [
        "SessionCreated",
        "RunStarted",
        "PreferencesChanged",
        "ContextSet",
        "NodeCreated",
    ]


def test_a_plain_advance_records_three_things() -> None:
    play = Play().hand_in()

    assert play.kinds == ["AdvanceRecorded", "OutputAppended", "NodeCreated"]
    assert play.answer.pending.step_id == "step-2"


def test_handing_in_the_last_step_completes_the_run() -> None:
    play = Play().hand_in().hand_in()

    assert play.kinds == ["AdvanceRecorded", "OutputAppended", "NodeCreated", "RunCompleted"]
    answer = play.answer
    assert (answer.is_complete, answer.next_intent, answer.next_call) == (True, "complete", None)
    assert play.run.status == "complete"


def test_the_child_is_named_by_parent_and_attempt() -> None:
    first, second = Play().hand_in(), Play().hand_in()

    assert first.node.id == ids.child_node(ROOT, ids.first_attempt(ROOT))
    assert first.decided == second.decided


def test_a_complete_run_takes_no_more_steps() -> None:
    assert Play().hand_in().hand_in().hand_in("more").refusal == NO_PENDING_STEP


def test_what_is_wrong_with_the_call_itself_is_refused() -> None:
    assert refusal_code(Play().hand_in(NOTES_BLANK).refusal) == "notes_not_written"
    assert refusal_code(Play().hand_in("é" * NOTES_BYTES_MAX).refusal) == "notes_too_long"
    assert Play().hand_in(context={"goal": "another"}).refusal == InputRefused(
        "/context/goal", "this key is reserved"
    )
    assert isinstance(Play().hand_in("x" * NOTES_BYTES_MAX).outcome, PlannedReply)


def test_a_step_without_notes_is_blocked_and_can_be_tried_again() -> None:
    play = Play().hand_in("  ")

    assert play.kinds == [
        "AdvanceRecorded",
        "OutputAppended",
        "NodeCreated",
        "ValidationPerformed",
        "TraceAppended",
    ]
    assert play.answer.kind == "blocked"
    assert [found.code for found in play.answer.blocked.blockers] == ["missing_notes"]
    assert play.answer.blocked.attempts_left == BLOCKED_IN_ROW_MAX - 1
    assert play.answer.pending.step_id == "step-1"
    assert play.node.created.node_kind == "blocked"

    play.hand_in("notes at last")
    assert (play.answer.kind, play.answer.pending.step_id) == ("ok", "step-2")
    assert play.run.blocked_in_row == 0


def test_a_node_is_as_deep_as_steps_were_accepted_before_it() -> None:
    play = Play()

    depths = [play.hand_in(notes).node.created.depth for notes in ("", "done", "", "done")]

    assert depths == [0, 1, 1, 2]


def test_an_approval_is_asked_for_the_step_that_was_handed_in() -> None:
    wish = {"kind": "human_approval", "question": "Well?", "timeoutMinutes": 1}
    play = Play(changed(first={"require_confirmation": wish})).hand_in()

    asked = ids.approval_id(play.node.id)
    assert [event for event in play.events if isinstance(event, ApprovalRequested)] == [
        ApprovalRequested(asked, "human_approval", StepId("step-1"), "Well?", "deny", 62_000)
    ]


def test_after_ten_blocked_attempts_the_run_waits_for_the_user() -> None:
    play = Play()
    for left in range(BLOCKED_IN_ROW_MAX - 1, -1, -1):
        play.hand_in("")
        assert play.answer.blocked.attempts_left == left

    assert play.answer.next_intent == "rehydrate_only"
    assert play.run.status == "waiting"
    assert refusal_code(play.hand_in("notes").refusal) == "run_waits"


def test_a_step_may_do_without_notes() -> None:
    play = Play(changed(first={"notes_optional": True})).hand_in("")

    assert play.answer.kind == "ok"


def test_a_step_that_only_reads_says_so_and_no_other_spends_a_word_on_it() -> None:
    play = Play(changed(first={"read_only": True}))
    told, text = msgspec.to_builtins(play.answer), play.decided.reply.text
    assert told["pending"]["isReadOnly"] is True
    assert "This step only reads: change nothing in the workspace." in text

    play.hand_in()

    told, text = msgspec.to_builtins(play.answer), play.decided.reply.text
    assert "isReadOnly" not in told["pending"]
    assert "only reads" not in text


def test_criteria_block_with_what_would_pass() -> None:
    wanted = {"type": "contains", "value": "root cause"}
    play = Play(changed(first={"validation_criteria": wanted}))
    assert "root cause" in play.answer.pending.prompt

    play.hand_in("I looked")
    (blocker,) = play.answer.blocked.blockers
    assert (blocker.code, blocker.pointer) == ("invalid_output", "/output/notesMarkdown")
    assert "root cause" in blocker.suggestion

    assert play.hand_in("The root cause is here").answer.kind == "ok"


def test_a_first_prompt_that_speaks_of_what_is_unset_is_refused() -> None:
    workflow = changed(first={"prompt": "Look at {{area}} and {{depth}} and {{area}}."})

    assert Play(workflow).refusal == ContextUnset(("area", "depth"))


def test_a_later_prompt_that_speaks_of_what_is_unset_blocks_until_it_is_set() -> None:
    steps = linear(2).steps
    second = msgspec.structs.replace(steps[1], prompt="Mend {{file}}.")
    play = Play(changed(steps=(steps[0], second)))

    play.hand_in()
    (blocker,) = play.answer.blocked.blockers
    assert (blocker.code, blocker.pointer) == ("missing_context_key", "/context/file")

    play.hand_in(context={"file": "a.py"})
    assert play.answer.pending.prompt.startswith("Mend a.py.")
    assert "ContextSet" in play.kinds


def test_a_gap_that_the_agent_reports_is_recorded_and_can_be_closed() -> None:
    play = Play().hand_in("done", {"kind": "gap", "severity": "critical", "summary": "No tests"})
    (gap,) = [event for event in play.events if isinstance(event, GapRecorded)]

    assert (play.run.gaps_open, play.run.gaps_critical) == (1, 1)
    assert play.answer.gaps == (AnswerGap(gap.gap, "critical", "No tests"),)

    closing: Json = {"kind": "gap_resolution", "gapId": gap.gap, "how": "wrote them"}
    play.hand_in("done", closing, open_gaps={gap.gap: gap})
    assert (play.run.gaps_open, play.run.status) == (0, "complete")


def test_a_run_with_an_open_critical_gap_ends_with_gaps() -> None:
    play = (
        Play()
        .hand_in()
        .hand_in("done", {"kind": "gap", "severity": "critical", "summary": "No tests"})
    )

    assert play.run.status == "complete_with_gaps"


def test_closing_a_gap_that_is_not_open_is_a_warning() -> None:
    play = Play().hand_in("done", {"kind": "gap_resolution", "gapId": "gap_x", "how": "?"})

    (warning,) = play.answer.warnings
    assert warning.startswith("There is no open gap `gap_x` in this run; nothing was resolved.")
    assert "`interlock gaps resolve" in warning


def test_a_known_artifact_of_the_wrong_shape_blocks_with_an_example() -> None:
    play = Play().hand_in("done", {"kind": "gap", "severity": "huge"})

    (blocker,) = play.answer.blocked.blockers
    assert (blocker.code, blocker.pointer) == ("invalid_artifact", "/output/artifacts/0")
    assert msgspec.json.encode(artifacts.EXAMPLES["gap"]).decode() in blocker.suggestion


def test_artifacts_of_other_kinds_are_kept_and_not_read() -> None:
    play = Play().hand_in("done", {"kind": "report", "lines": [1, 2]}, "just a string")

    assert play.answer.kind == "ok"
    assert len(play.plan.blobs) == 4


@pytest.mark.invariant("head-is-a-fold")
def test_the_head_kept_along_the_way_is_the_fold_of_all_events() -> None:
    play = Play(changed(capabilities={"web_browsing": "preferred"}))
    play.hand_in("").hand_in(
        "done",
        {"kind": "gap", "severity": "critical", "summary": "No tests"},
        {
            "kind": "capability_observation",
            "capability": "web_browsing",
            "status": "unavailable",
            "evidence": "tried",
        },
        context={"x": 1},
    ).hand_in()

    folded = None
    for body in play.bodies:
        folded = head.apply_event(folded, decode_envelope(body))

    assert play.plan.head == folded
    assert (play.run.steps_done, play.run.gaps_open, play.run.status) == (
        2,
        2,
        "complete_with_gaps",
    )


def test_a_plan_continues_the_chain_of_its_stream() -> None:
    begun = Play()

    end, head = begun.plan.links[-1].digest, begun.plan.head
    assert begun.stream == Stream(SESSION, 5, end, head, {RUN: begun.run})
    assert [link.seq for link in begun.hand_in().plan.links] == [5, 6, 7]
