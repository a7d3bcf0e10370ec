"""The evidence of how a session began, made from what was observed, and read from an event.

Sessions that were recorded earlier have three other keys: `branch`, `profile` and `logbook`.
"""

from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.session.requirements import (
    CheckedRequirement,
    Fact,
    evidence_text,
    fact_of,
    judge,
    profile_named,
    requirements_of,
)

MAIN_BRANCHES = ("main", "master")
BINDING_NOTES = ("usage-mandatory", "project-constraints")
"""Names of the notes that every session is given, as far as there is room."""
NO_GIT = "no git"
_NOT_WRITTEN = "not written: "


class SkillCount(msgspec.Struct, frozen=True):
    documents: int = 0
    shell_scripts: int = 0
    powershell_scripts: int = 0
    is_complete: bool = True
    """Whether there were not too many to count."""

    @property
    def text(self) -> str:
        total = self.documents + self.shell_scripts + self.powershell_scripts
        more = "" if self.is_complete else "at least "
        noun = "skill" if total == 1 else "skills"
        kinds = f"{self.documents} SKILL.md, {self.shell_scripts} .sh"
        return f"{more}{total} {noun} ({kinds}, {self.powershell_scripts} .ps1)"


class BindingNote(msgspec.Struct, frozen=True):
    name: str
    version: str


class StartObservation(msgspec.Struct, frozen=True):
    branch: str | None
    """The branch; None where there is no git."""
    skills: SkillCount
    notes_folder: str = ""
    notes_fault: str = ""
    """Why the notes cannot be read; empty if they can."""
    binding_notes: Sequence[BindingNote] = ()
    note_count: int = 0
    earlier_session: str = ""
    """The session before this one in the same directory; empty if this is the first."""
    logbook: str = ""
    logbook_fault: str = ""
    """Why there is no logbook."""


def start_facts(observed: StartObservation) -> dict[str, Fact]:
    """Return the fact about each requirement of the start."""
    binding = ", ".join(f"{note.name} {note.version}" for note in observed.binding_notes)
    none_binds = f"no note is named {' or '.join(BINDING_NOTES)}"
    log = _fact_of(observed.logbook, "the profile has none")
    if observed.logbook_fault:
        log = Fact("open", f"{_NOT_WRITTEN}{observed.logbook_fault}")
    facts = {
        "brainInit": Fact("done", f"notes in {observed.notes_folder}"),
        "handoffRead": _fact_of(observed.earlier_session, "no session was here before"),
        "skillsVerified": Fact("done", observed.skills.text),
        "sessionLogCreated": log,
        "constraintsRead": _fact_of(binding, none_binds),
        "memoriesLoaded": _fact_of(
            f"{observed.note_count} found" if observed.note_count else "", "there are no notes"
        ),
        **branch_facts(observed.branch),
    }
    if observed.notes_fault:
        fault = Fact("open", observed.notes_fault)
        facts |= dict.fromkeys(("brainInit", "constraintsRead", "memoriesLoaded"), fault)
    return facts


def _fact_of(evidence: str, why_not: str) -> Fact:
    """Return the fact with this evidence; without any, why the requirement does not apply."""
    return Fact("done", evidence) if evidence else Fact("skipped", why_not)


def branch_facts(branch: str | None) -> dict[str, Fact]:
    if branch is None:
        return {
            "branchVerified": Fact("done", NO_GIT),
            "notOnMain": Fact("skipped", NO_GIT),
        }
    status = "open" if branch in MAIN_BRANCHES else "done"
    return {"branchVerified": Fact("done", branch), "notOnMain": Fact(status, branch)}


def recorded_start_facts(evidence: Mapping[str, str]) -> dict[str, Fact]:
    """Return the facts in the evidence of an event, however old it is."""
    facts = {key: fact_of(text) for key, text in evidence.items()}
    if branch := evidence.get("branch"):
        facts = {**branch_facts(None if branch == NO_GIT else branch), **facts}
    if logbook := evidence.get("logbook"):
        is_open = logbook.startswith(_NOT_WRITTEN)
        facts.setdefault("sessionLogCreated", Fact("open" if is_open else "done", logbook))
    return facts


def recorded_branch(evidence: Mapping[str, str]) -> str:
    """Return the branch on which the session began; empty if nobody recorded it."""
    return evidence.get("branchVerified") or evidence.get("branch", "")


def recorded_logbook(evidence: Mapping[str, str]) -> str:
    """Return the path of the logbook from the project's root; empty if there is none."""
    fact = recorded_start_facts(evidence).get("sessionLogCreated")
    return fact.evidence if fact and fact.status == "done" else ""


def open_at_start(evidence: Mapping[str, str], profile: str) -> tuple[CheckedRequirement, ...]:
    """Return the required parts of the start that are open.

    Evidence that an older version recorded is judged by the requirements that it knew.
    """
    facts = recorded_start_facts(evidence)
    required = requirements_of(profile_named(profile), "start")
    known = [one for one in required if one.id in facts] or required
    return tuple(one for one in judge(known, facts) if one.is_blocking)


def renew_evidence(recorded: Mapping[str, str], observed: Mapping[str, Fact]) -> dict[str, str]:
    """Merge the recorded evidence with new observations; waivers stay."""
    texts = {key: evidence_text(fact) for key, fact in observed.items()}
    waived = {key: text for key, text in recorded.items() if fact_of(text).is_waived}
    return {**recorded, **texts, **waived}
