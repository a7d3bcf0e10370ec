"""The journal says what comes next, wherever it was cut off."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.unattended.conversation import (
    ModelMessage,
    SpokenPart,
    ToolMessage,
    ToolReply,
    ToolRequest,
    Usage,
    UserMessage,
)
from interlock.core.unattended.journal import (
    COMPLETE_STEP,
    NO_TOOL,
    AdvanceAnswered,
    AdvanceIntended,
    BeginStep,
    CallModel,
    ClientReported,
    Entry,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    RunTool,
    SendAdvance,
    StepBegun,
    ToolEnded,
    ToolStarted,
    WorkProgress,
    apply_entry,
    fold,
    next_action,
)

STEP = StepBegun(
    "run_1", "only", "Only", 1, "token", "system", "Do it", "scripted:x", ("Bash",), "off"
)
CALLED = ModelCalled("digest", 100)


def answered(*calls: str, cost: int | None = 10) -> ModelAnswered:
    parts = tuple(ToolRequest(name, "Bash", "{}") for name in calls) or (SpokenPart("Hm."),)
    return ModelAnswered(ModelMessage(parts), "tools", Usage(10, 5, cost_micros=cost), 20)


def ended(call: str) -> ToolEnded:
    return ToolEnded(ToolReply(call, "Bash", f"result of {call}"), 5)


def test_each_entry_leads_to_the_one_thing_that_comes_next() -> None:
    one, two = ToolRequest("1", "Bash", "{}"), ToolRequest("2", "Bash", "{}")
    answer = answered("1", "2")
    results = ToolMessage((ended("1").result, ended("2").result))
    intended = AdvanceIntended("1", "token", "{}")
    expected = [
        (STEP, CallModel()),
        (CALLED, CallModel()),
        (answer, RunTool(one, was_started=False)),
        (ToolStarted("1", "Bash"), RunTool(one, was_started=True)),
        (ended("1"), RunTool(two, was_started=False)),
        (MessageAdded("Mind that", "steer", "s1"), RunTool(two, was_started=False)),
        (ended("2"), CallModel()),
    ]
    progress = WorkProgress()
    assert next_action(progress) == BeginStep()
    for entry, action in expected:
        progress = apply_entry(progress, entry)
        assert next_action(progress) == action, entry
    said = (UserMessage("Do it"), answer.message, results, UserMessage("Mind that"))
    assert progress.messages == said
    handed = ModelAnswered(
        ModelMessage((ToolRequest("1", COMPLETE_STEP, "{}"),)), "tools", Usage(), 0
    )
    progress = fold([handed, intended], progress)
    assert next_action(progress) == SendAdvance(intended)
    blocked = apply_entry(progress, AdvanceAnswered("blocked", "Notes are missing", "token-2"))
    assert isinstance(next_action(blocked), CallModel)
    assert blocked.token == "token-2"
    assert blocked.messages[-1] == ToolMessage(
        (ToolReply("1", COMPLETE_STEP, "Notes are missing", is_error=True),)
    )
    assert next_action(apply_entry(progress, AdvanceAnswered("advanced", ""))) == BeginStep()


def test_a_call_whose_answer_never_came_is_in_the_cost_by_estimate() -> None:
    spent = fold([STEP, CALLED, answered("1"), ended("1"), CALLED, CALLED, answered()]).spent

    assert spent.turns == 2
    assert spent.usage == Usage(input=120, output=10, cost_micros=30, is_estimated=True)


def test_a_refused_call_costs_nothing_and_an_unknown_price_stays_unknown() -> None:
    failed = ModelFailed("overloaded", "busy", wait_ms=100)
    spent = fold([STEP, CALLED, failed, CALLED, answered(cost=None)]).spent

    assert spent.usage == Usage(input=10, output=5, cost_micros=None)


def test_a_message_is_remembered_as_told_in_the_steps_that_follow() -> None:
    told = MessageAdded("Mind that", "steer", "s1")

    assert fold([STEP, told, STEP]).steered == ("s1",)


def test_a_model_that_only_talks_is_told_to_call_a_tool() -> None:
    progress = fold([STEP, CALLED, answered()])

    assert progress.messages[-1] == UserMessage(NO_TOOL)
    assert progress.silent_in_row == 1


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """A journal as a driver writes it, with kills: what was begun may have no end."""
    entries: list[Entry] = [STEP]
    for turn in range(draw(st.integers(0, 6))):
        entries += [CALLED] * draw(st.integers(1, 3))
        names = [f"{turn}-{n}" for n in range(draw(st.integers(0, 3)))]
        entries.append(answered(*names))
        for name in names:
            if draw(st.booleans()):
                entries.append(MessageAdded("A word", "steer", f"s{len(entries)}"))
            entries += [ToolStarted(name, "Bash"), ended(name)]
    return entries


@given(journals(), st.data())
def test_wherever_it_is_cut_off_every_call_that_the_model_sees_has_its_result(
    entries: list[Entry], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    progress = fold(entries[:cut])

    assert fold(entries[cut:], progress) == fold(entries), "folding on is the same as folding anew"
    if isinstance(next_action(progress), CallModel):
        asked = [m for m in progress.messages if isinstance(m, ModelMessage) and m.calls]
        told = [m for m in progress.messages if isinstance(m, ToolMessage)]
        assert [[call.id for call in message.calls] for message in asked] == [
            [result.call for result in message.results] for message in told
        ]
        assert not isinstance(progress.messages[-1], ModelMessage), "it is the model's turn"


def test_what_a_client_tells_late_is_charged_once_and_a_killed_one_by_estimate() -> None:
    begun, told = ClientReported("c"), ClientReported("c", 30, 30, ms=7)
    turn = answered(cost=None)

    paid = fold([STEP, begun, turn, turn, told]).spent
    killed = fold([STEP, begun, turn, turn, told, begun, turn, STEP, begun]).spent

    assert (paid.turns, paid.work_ms, paid.usage) == (2, 47, Usage(20, 10, cost_micros=30))
    assert killed.usage == Usage(30, 15, cost_micros=45, is_estimated=True)


def test_a_sign_is_known_until_the_next_step_or_until_somebody_lets_it_go_on() -> None:
    noted = fold([STEP, JournalNote("stuck", "no call"), JournalNote("limit", "80%")])

    assert noted.signs == ("no call",)
    assert apply_entry(noted, STEP).signs == ()
    assert apply_entry(noted, JournalNote("resumed", "the work goes on")).signs == ()
