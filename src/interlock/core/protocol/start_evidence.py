"""The evidence of how a session began, made from what was observed, and read from an event.

Sessions that were recorded earlier have three other keys: `branch`, `profile` and `logbook`.
"""

from collections.abc import Mapping, Sequence

import msgspec

from interlock.core.protocol.requirements import Fact, evidence_text, fact_of

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
    logbook: str = ""
    logbook_fault: str = ""
    """Why there is no logbook."""


def start_facts(observed: StartObservation) -> dict[str, Fact]:
    """Return the fact about each requirement of the start."""
    notes = ", ".join(f"{note.name} {note.version}" for note in observed.binding_notes)
    fault = Fact("open", observed.notes_fault)
    log = Fact("done", observed.logbook)
    if observed.logbook_fault:
        log = Fact("open", f"{_NOT_WRITTEN}{observed.logbook_fault}")
    elif not observed.logbook:
        log = Fact("skipped", "the profile has none")
    return {
        "brainInit": fault
        if observed.notes_fault
        else Fact("done", f"notes in {observed.notes_folder}"),
        "skillsVerified": Fact("done", observed.skills.text),
        "sessionLogCreated": log,
        "constraintsRead": fault
        if observed.notes_fault
        else Fact("done", notes or "none in this project"),
        **branch_facts(observed.branch),
    }


def branch_facts(branch: str | None) -> dict[str, Fact]:
    if branch is None:
        return {
            "branchVerified": Fact("done", NO_GIT),
            "notOnMain": Fact("skipped", NO_GIT),
        }
    status = "open" if branch in MAIN_BRANCHES else "done"
    return {"branchVerified": Fact("done", branch), "notOnMain": Fact(status, branch)}


def start_evidence(observed: StartObservation) -> dict[str, str]:
    return {key: evidence_text(fact) for key, fact in start_facts(observed).items()}


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
