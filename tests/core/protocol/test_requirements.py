"""What each profile requires, and how what was observed is judged."""

import pytest

from interlock.core.protocol.end_facts import (
    WorktreeState,
    added_fact,
    branch_fact,
    checklist_fact,
    commit_fact,
    handoff_fact,
    qa_fact,
    qa_skip_reason,
    secrets_fact,
    verdict_fact,
)
from interlock.core.session.delegation_events import VerdictOutcome
from interlock.core.session.evidence import CommandRecord, CommandRun
from interlock.core.session.orchestration import Verdict, VerdictDecision
from interlock.core.session.requirements import (
    CommandVerifier,
    Fact,
    FileVerifier,
    Level,
    ProtocolProfile,
    Requirement,
    RequirementStatus,
    VerdictVerifier,
    Verifier,
    evidence_text,
    fact_of,
    judge,
    requirements_of,
    waiver_text,
)
from interlock.core.session.start_evidence import (
    BindingNote,
    SkillCount,
    StartObservation,
    branch_facts,
    open_at_start,
    recorded_branch,
    recorded_logbook,
    recorded_start_facts,
    renew_evidence,
    start_facts,
)
from interlock.core.session.state import timestamp

START = (
    "brainInit handoffRead skillsVerified sessionLogCreated constraintsRead memoriesLoaded"
    " branchVerified notOnMain"
)
END = (
    "checklistComplete sessionLogValidated validationPassed handoffPreserved secretsScanned"
    " brainMemoryUpdated markdownLintRan branchReverified gitCommitted qaValidation"
)
SKILLS = SkillCount(2, 1, 0)


@pytest.mark.parametrize(
    ("profile", "usual", "start", "end"),
    [
        ("light", "MAY", "", ""),
        (
            "standard",
            "SHOULD",
            "sessionLogCreated constraintsRead branchVerified",
            "sessionLogValidated markdownLintRan",
        ),
        ("strict", "MUST", START, END),
        ("unattended", "MUST", START, f"{END} criticValidation"),
    ],
)
def test_a_profile_says_what_blocks_and_at_which_level_the_rest_holds(
    profile: ProtocolProfile, usual: Level, start: str, end: str
) -> None:
    for phase, ids, musts in (("start", START, start), ("end", END, end)):
        found = requirements_of(profile, phase)  # pyright: ignore[reportArgumentType]
        blocking = [one.id for one in judge(found, {}) if one.is_blocking]
        extra = " criticValidation" if (profile, phase) == ("unattended", "end") else ""

        assert " ".join(one.id for one in found) == ids + extra
        assert " ".join(blocking) == musts
        assert {one.level for one in found if one.id not in blocking} <= {usual}
        assert all(one.step and one.remedy for one in found)


@pytest.mark.parametrize("level", ["MUST", "SHOULD", "MAY"])
@pytest.mark.parametrize(
    ("fact", "is_to_do"),
    [
        (Fact("open", "not yet"), True),
        (Fact("open", "later", is_pending=True), False),
        (Fact("skipped", "docs-only"), False),
        (Fact("done", "abc"), False),
    ],
)
def test_only_what_is_open_and_must_be_and_is_for_somebody_to_do_blocks(
    level: Level, fact: Fact, *, is_to_do: bool
) -> None:
    (checked,) = judge([Requirement("a", level, "end", "Do it", "Then do it.")], {"a": fact})

    assert (checked.level, checked.status, checked.evidence) == (level, fact.status, fact.evidence)
    assert checked.is_blocking == (is_to_do and level == "MUST")
    assert checked.remedy == ("Then do it." if is_to_do else ""), "said also of what may stay open"
    assert fact_of(evidence_text(fact)) == Fact(fact.status, fact.evidence)


def evidence_of(observed: StartObservation) -> dict[str, str]:
    return renew_evidence({}, start_facts(observed))


def test_the_evidence_of_a_start_has_its_keys_and_says_what_is_open_or_does_not_apply() -> None:
    on_main = evidence_of(
        StartObservation(
            branch="main",
            skills=SKILLS,
            notes_folder="notes",
            binding_notes=(BindingNote("usage-mandatory", "0123456789ab"),),
            note_count=3,
            earlier_session="ses_1",
            logbook=".agents/sessions/x.md",
        )
    )
    assert on_main == {
        "brainInit": "notes in notes",
        "handoffRead": "ses_1",
        "skillsVerified": "3 skills (2 SKILL.md, 1 .sh, 0 .ps1)",
        "sessionLogCreated": ".agents/sessions/x.md",
        "constraintsRead": "usage-mandatory 0123456789ab",
        "memoriesLoaded": "3 found",
        "branchVerified": "main",
        "notOnMain": "open: main",
    }
    broken = evidence_of(
        StartObservation(None, SKILLS, notes_fault="it is shut", logbook_fault="it is full")
    )
    noted = ("brainInit", "constraintsRead", "memoriesLoaded")
    assert {key: fact.status for key, fact in recorded_start_facts(broken).items()} == {
        **dict.fromkeys((*noted, "sessionLogCreated"), "open"),
        **dict.fromkeys(("skillsVerified", "branchVerified"), "done"),
        **dict.fromkeys(("handoffRead", "notOnMain"), "skipped"),
    }
    first = evidence_of(StartObservation("x", SKILLS, notes_folder="notes"))
    for key in ("handoffRead", "constraintsRead", "memoriesLoaded", "sessionLogCreated"):
        assert first[key].startswith("skipped: "), "it does not apply, which is not done"


def test_the_start_is_complete_once_no_required_part_is_open() -> None:
    recorded = evidence_of(StartObservation("main", SKILLS, notes_folder="notes"))
    (on_main,) = open_at_start(recorded, "strict")
    assert (on_main.id, on_main.evidence) == ("notOnMain", "main")
    assert open_at_start(recorded, "standard") == ()
    assert len(open_at_start({}, "strict")) == 8, "nothing recorded is nothing met"
    assert open_at_start({"branch": "x", "logbook": "a.md"}, "strict") == (), "as it was once"

    waived = {**recorded, "notOnMain": waiver_text("ana", "a hotfix")}
    assert open_at_start(waived, "strict") == ()
    assert renew_evidence(waived, branch_facts("main")) == {**waived, "branchVerified": "main"}
    moved = renew_evidence(recorded, branch_facts("fix"))
    assert (moved["notOnMain"], open_at_start(moved, "strict")) == ("fix", ())


@pytest.mark.parametrize(
    ("evidence", "branch", "logbook"),
    [
        ({"branch": "main", "profile": "strict", "logbook": "a.md"}, "main", "a.md"),
        ({"branch": "x", "logbook": "not written: it is full"}, "x", ""),
        ({"branchVerified": "x", "sessionLogCreated": "a.md"}, "x", "a.md"),
        ({"sessionLogCreated": "open: not written: it is full"}, "", ""),
        ({}, "", ""),
    ],
)
def test_older_evidence_is_read_as_well(
    evidence: dict[str, str], branch: str, logbook: str
) -> None:
    assert (recorded_branch(evidence), recorded_logbook(evidence)) == (branch, logbook)
    on_main = recorded_start_facts(evidence).get("notOnMain")
    assert (on_main is not None and on_main.status == "open") == (branch == "main")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (None, ""),
        ((), "investigation-only"),
        ((".agents/sessions/a.md", ".agents/analysis/run.py"), "investigation-only"),
        (("README.md", ".interlock/notes/a.md", "docs/a.RST"), "docs-only"),
        (("README.md", "src/a.py"), ""),
        ((".agents/skills/a/run.sh",), ""),
        (("security/check.py",), ""),
    ],
)
def test_nobody_tests_what_is_no_code(changed: tuple[str, ...] | None, reason: str) -> None:
    assert qa_skip_reason(changed) == reason


def verdict(
    outcome: VerdictOutcome, decision: VerdictDecision, at_ms: int = 10, agent: str = "qa"
) -> Verdict:
    return Verdict(agent, decision, outcome, 90, "so", timestamp(at_ms))


@pytest.mark.parametrize(
    ("verdicts", "changed_ms", "status"),
    [
        ((), 0, "open"),
        ((verdict("PASS", "approve"),), 9, "done"),
        ((verdict("WARN", "conditional"),), 9, "done"),
        ((verdict("PASS", "approve"),), 11, "open"),
        ((verdict("PASS", "approve"), verdict("FAIL", "needs_revision")), 0, "open"),
        ((verdict("REJECTED", "reject"), verdict("PASS", "approve")), 0, "done"),
        ((verdict("PASS", "approve", agent="critic"),), 0, "open"),
    ],
)
def test_the_last_verdict_of_the_tester_must_be_younger_than_the_code(
    verdicts: tuple[Verdict, ...], changed_ms: int, status: RequirementStatus
) -> None:
    tree = WorktreeState("abc", ("a.py",), (), changed_ms)

    assert qa_fact(tree, verdicts).status == status
    assert verdict_fact("nobody", verdicts).status == "open"


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (WorktreeState(), Fact("skipped", "no git")),
        (WorktreeState("a" * 40, (), ()), Fact("done", "a" * 12)),
        (WorktreeState("a" * 40, (), ("x", "y")), Fact("open", "not committed: x, y")),
    ],
)
def test_what_is_not_committed_is_named(tree: WorktreeState, expected: Fact) -> None:
    assert commit_fact(tree) == expected


def test_the_end_judges_the_start_the_branch_the_hand_off_and_secrets() -> None:
    unchanged, changed = WorktreeState("a", ()), WorktreeState("a", ("a.py", "docs/HANDOFF.md"))
    on_main = Fact("open", "main")
    (is_open,) = judge([Requirement("notOnMain", "MUST", "start", "", "")], {"notOnMain": on_main})
    assert checklist_fact(unchanged, [is_open]).status == "skipped"
    assert checklist_fact(changed, [is_open]) == Fact("open", "notOnMain (main)")
    assert checklist_fact(changed, []).status == "done"
    assert branch_fact(unchanged, on_main).status == "skipped"
    assert branch_fact(changed, on_main) == on_main
    assert handoff_fact(changed, is_there=True) == Fact("open", "changed: docs/HANDOFF.md")
    assert handoff_fact(unchanged, is_there=True).status == "done"
    assert handoff_fact(unchanged, is_there=False).status == "skipped"
    assert secrets_fact({"a.md": "x"}).status == "done"
    leak = secrets_fact({"a.md": "AKIAZ7QX3KJ4TW5YB2ND"})
    assert leak == Fact("open", "a.md: aws-access-token (AKIA…)")


RAN = CommandRecord((CommandRun("make check", "success", 10),), 5)


@pytest.mark.parametrize(
    ("verifier", "record", "status"),
    [
        (CommandVerifier("make check"), RAN, "done"),
        (CommandVerifier("make check"), CommandRecord(RAN.runs, 11), "open"),
        (CommandVerifier("make test"), RAN, "open"),
        (FileVerifier("here"), RAN, "done"),
        (FileVerifier("there"), RAN, "open"),
        (VerdictVerifier("qa"), RAN, "done"),
        (VerdictVerifier("critic"), RAN, "open"),
    ],
)
def test_a_project_adds_commands_files_and_verdicts(
    verifier: Verifier, record: CommandRecord, status: RequirementStatus
) -> None:
    added = Requirement("own", "MUST", "end", "Ours", "", verifier)
    fact = added_fact(
        added,
        record=record,
        verdicts=[verdict("PASS", "approve")],
        has_file=lambda name: name == "here",
    )

    assert fact.status == status
    assert bool(judge([added], {"own": fact})[0].remedy) == (status == "open")
