"""The requirements of the session protocol as data, and their evaluation.

A profile sets the level of each requirement; a project may add its own for the end of a session.
An observation about one is a `Fact`. In events a fact is a text whose prefix is the status of the
requirement (`evidence_text`, `fact_of`).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

Level = Literal["MUST", "SHOULD", "MAY"]
ProtocolPhase = Literal["start", "end"]
RequirementStatus = Literal["done", "open", "skipped"]
ProtocolProfile = Literal["light", "standard", "strict", "unattended"]


class CommandVerifier(msgspec.Struct, frozen=True, tag="command"):
    """The command passed, as hooks have seen, after the last change."""

    command: str


class FileVerifier(msgspec.Struct, frozen=True, tag="file"):
    """The file is in the project."""

    file: str


class VerdictVerifier(msgspec.Struct, frozen=True, tag="verdict"):
    """The latest verdict of the agent does not block."""

    agent: str


Verifier: TypeAlias = CommandVerifier | FileVerifier | VerdictVerifier


class Requirement(msgspec.Struct, frozen=True):
    id: str
    """The key of its evidence."""
    level: Level
    phase: ProtocolPhase
    step: str
    remedy: str
    verifier: Verifier | None = None
    """Of a requirement that a project has added."""


class Fact(msgspec.Struct, frozen=True):
    """An observation about a requirement."""

    status: RequirementStatus
    evidence: str
    is_pending: bool = False
    """Whether it is open only because the end of the session meets it itself."""
    remedy: str = ""
    """What to do, if that is more specific than the requirement's own remedy."""

    @property
    def is_waived(self) -> bool:
        return self.status == "skipped" and self.evidence.startswith(_WAIVED)


class CheckedRequirement(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    level: Level
    step: str
    status: RequirementStatus
    evidence: str
    is_blocking: bool
    remedy: str


_START = (
    (
        "brainInit",
        "The project's notes are readable",
        "Fix the problem that `interlock note check` reports.",
    ),
    (
        "handoffRead",
        "The briefing has what the previous session left open",
        "Start another session once the store can be read.",
    ),
    (
        "skillsVerified",
        "The agent's skills are counted",
        "Make the skill folders readable.",
    ),
    (
        "sessionLogCreated",
        "The session has a logbook",
        "Make `.agents/sessions` writable, then run `interlock session log --write`.",
    ),
    (
        "constraintsRead",
        "The briefing has the project's binding notes",
        "Make the notes folder readable.",
    ),
    (
        "memoriesLoaded",
        "The project's notes were searched for the briefing",
        "Make the notes folder readable.",
    ),
    ("branchVerified", "The branch is known", "Check out a branch, or a commit."),
    (
        "notOnMain",
        "The branch is not the main one",
        "Create a branch before you edit: `git switch -c NAME`.",
    ),
)
_END = (
    (
        "checklistComplete",
        "Every requirement of the start is met",
        "Meet the open requirements; `interlock session show` lists them.",
    ),
    (
        "sessionLogValidated",
        "The logbook has what was done and what is left open",
        "Write under “What was done” in the logbook, or end the session with a summary.",
    ),
    (
        "validationPassed",
        "The logbook passes `interlock check session-log`",
        "Run `interlock session log --write`, then fix the lines that it names.",
    ),
    (
        "handoffPreserved",
        "No HANDOFF.md was changed",
        "Undo the change; `interlock session handoff` writes a hand-off from the session.",
    ),
    (
        "secretsScanned",
        "The session's own files hold no secrets",
        "Remove the secret from the file, and rotate it.",
    ),
    (
        "brainMemoryUpdated",
        "The session's summary is saved as a note of the project",
        "Make the notes folder writable.",
    ),
    (
        "markdownLintRan",
        "The session's own files have no Markdown problems",
        "Fix the reported lines.",
    ),
    (
        "branchReverified",
        "The changes are not on the main branch",
        "Move them to a branch: `git switch -c NAME`.",
    ),
    (
        "gitCommitted",
        "Nothing is left uncommitted",
        "Commit the changes of this work; stash or discard the others.",
    ),
    (
        "qaValidation",
        "A tester has reviewed the current code",
        "Delegate to `qa`, and complete the delegation with its verdict.",
    ),
)
_CRITIC = (
    "criticValidation",
    "A critic has reviewed the work",
    "Delegate to `critic`, and complete the delegation with its verdict.",
)

_LEVELS: dict[ProtocolProfile, tuple[Level, frozenset[str]]] = {
    # The level of the others, and the requirements that are a MUST.
    "light": ("MAY", frozenset()),
    "standard": (
        "SHOULD",
        frozenset(
            {
                *("sessionLogCreated", "constraintsRead", "branchVerified"),
                *("sessionLogValidated", "markdownLintRan"),
            }
        ),
    ),
    "strict": ("MUST", frozenset()),
    "unattended": ("MUST", frozenset()),
}

START_IDS = tuple(row[0] for row in _START)
END_IDS = tuple(row[0] for row in _END)
STEPS = {name: step for name, step, _ in (*_START, *_END, _CRITIC)}
"""What each built-in requirement demands, by its id."""
BUILT_IN_IDS = frozenset(STEPS)
_WAIVED = "waived by "
_PREFIXES: tuple[tuple[RequirementStatus, str], ...] = (
    ("open", "open: "),
    ("skipped", "skipped: "),
)


def profile_named(name: str) -> ProtocolProfile:
    """Return the profile of this name; the usual one where nobody knows it."""
    profiles: tuple[ProtocolProfile, ...] = get_args(ProtocolProfile)
    for profile in profiles:
        if profile == name:
            return profile
    return "standard"


def requirements_of(
    profile: ProtocolProfile, phase: ProtocolPhase, added: Sequence[Requirement] = ()
) -> tuple[Requirement, ...]:
    """Return what a profile requires; `added` are the requirements of the project."""
    rows = _START if phase == "start" else _END
    if phase == "end" and profile == "unattended":
        rows = (*rows, _CRITIC)
    usual, musts = _LEVELS[profile]
    built_in = (
        Requirement(key, "MUST" if key in musts else usual, phase, step, remedy)
        for key, step, remedy in rows
    )
    return (*built_in, *(one for one in added if one.phase == phase))


def judge(
    requirements: Sequence[Requirement], facts: Mapping[str, Fact]
) -> tuple[CheckedRequirement, ...]:
    """Judge every requirement by the fact that was observed about it; one without is open."""
    unknown = Fact("open", "not observed")
    return tuple(_check(one, facts.get(one.id, unknown)) for one in requirements)


def _check(requirement: Requirement, fact: Fact) -> CheckedRequirement:
    is_open = fact.status == "open" and not fact.is_pending
    return CheckedRequirement(
        requirement.id,
        requirement.level,
        requirement.step,
        fact.status,
        fact.evidence,
        is_open and requirement.level == "MUST",
        (fact.remedy or requirement.remedy) if is_open else "",
    )


def evidence_text(fact: Fact | CheckedRequirement) -> str:
    """Return the fact as the text of an event."""
    return f"{dict(_PREFIXES).get(fact.status, '')}{fact.evidence}"


def fact_of(evidence: str) -> Fact:
    """Return the fact that the text of an event stands for."""
    for status, prefix in _PREFIXES:
        if evidence.startswith(prefix):
            return Fact(status, evidence.removeprefix(prefix))
    return Fact("done", evidence)


def waiver_text(who: str, reason: str) -> str:
    """Return the evidence of a requirement that a person has waived."""
    return f"skipped: {_WAIVED}{who}: {reason}"
