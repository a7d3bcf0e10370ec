"""The facts about the end of a session, judged from what was observed: git, commands, verdicts."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from interlock.core.session.delegation_events import AgentCompleted
from interlock.core.session.events import Envelope, RunCompleted
from interlock.core.session.evidence import CommandRecord, Proof, find_proof
from interlock.core.session.orchestration import Verdict
from interlock.core.session.protocol_events import ProtocolEndRequested
from interlock.core.session.requirements import (
    CheckedRequirement,
    CommandVerifier,
    Fact,
    FileVerifier,
    Requirement,
    VerdictVerifier,
)
from interlock.core.session.secrets import find_suspected_secrets
from interlock.core.session.state import timestamp

_DOCUMENT_ENDINGS = (".md", ".markdown", ".mdx", ".rst", ".adoc")
_INVESTIGATION_FOLDERS = (
    ".interlock/",
    *(
        f".agents/{name}/"
        for name in ("sessions", "analysis", "retrospective", "memories", "security")
    ),
)
NAMED_FILES_MAX = 5
HANDOFF_FILE = "HANDOFF.md"
NOTHING_CHANGED = "nothing was changed"


class WorktreeState(msgspec.Struct, frozen=True):
    """The worktree at the end of a session, as git sees it."""

    head: str = ""
    """The commit; empty where there is none."""
    changed: tuple[str, ...] | None = None
    """The files that differ from the commit at which the session began; None: nobody can tell."""
    uncommitted: tuple[str, ...] | None = None
    code_changed_ms: int = 0
    """When a file that is no documentation was last changed."""


def is_code(path: str) -> bool:
    """Whether a change of the file has to be tested."""
    return not (_is_investigation(path) or path.lower().endswith(_DOCUMENT_ENDINGS))


def qa_skip_reason(changed: Sequence[str] | None) -> str:
    """Return the rule by which nobody has to test; empty if somebody has."""
    if changed is None:
        return ""
    others = [path for path in changed if not _is_investigation(path)]
    if not others:
        return "investigation-only"
    return "" if any(map(is_code, others)) else "docs-only"


def _is_investigation(path: str) -> bool:
    return path.startswith(_INVESTIGATION_FOLDERS)


def qa_fact(tree: WorktreeState, verdicts: Sequence[Verdict]) -> Fact:
    """Judge the tester's verdict: it must be younger than the code, unless none is needed."""
    if reason := qa_skip_reason(tree.changed):
        return Fact("skipped", reason)
    fact = verdict_fact("qa", verdicts)
    latest = _latest_verdict("qa", verdicts)
    if fact.status == "done" and latest and latest.timestamp < timestamp(tree.code_changed_ms):
        return Fact("open", f"code has changed since the verdict of {latest.timestamp}")
    return fact


def verdict_fact(agent: str, verdicts: Sequence[Verdict]) -> Fact:
    latest = _latest_verdict(agent, verdicts)
    if latest is None:
        return Fact("open", f"{agent} has given no verdict")
    evidence = f"{latest.outcome} by {agent}, {latest.timestamp}"
    passes = latest.decision in ("approve", "conditional")
    return Fact("done" if passes else "open", evidence)


def _latest_verdict(agent: str, verdicts: Sequence[Verdict]) -> Verdict | None:
    return next((one for one in reversed(verdicts) if one.agent == agent), None)


def commit_fact(tree: WorktreeState) -> Fact:
    if not tree.head:
        return Fact("skipped", "no git")
    if tree.uncommitted is None:
        return Fact("open", "git does not say what is uncommitted")
    if not tree.uncommitted:
        return Fact("done", tree.head[:12])
    more = len(tree.uncommitted) - NAMED_FILES_MAX
    names = ", ".join(tree.uncommitted[:NAMED_FILES_MAX])
    return Fact("open", f"not committed: {names}{f' and {more} more' if more > 0 else ''}")


def checklist_fact(tree: WorktreeState, still_open: Sequence[CheckedRequirement]) -> Fact:
    """Judge the start again: its requirements count after the first change."""
    if tree.changed == ():
        return Fact("skipped", NOTHING_CHANGED)
    named = ", ".join(f"{one.id} ({one.evidence})" for one in still_open)
    return Fact("open", named) if named else Fact("done", "no MUST is open")


def branch_fact(tree: WorktreeState, on_branch: Fact) -> Fact:
    """Judge the branch that has the changes by the fact about `notOnMain`."""
    return Fact("skipped", NOTHING_CHANGED) if tree.changed == () else on_branch


def handoff_fact(tree: WorktreeState, *, is_there: bool) -> Fact:
    """Check that the project's hand-off file is unchanged."""
    changed = [path for path in tree.changed or () if path.rpartition("/")[2] == HANDOFF_FILE]
    if changed:
        return Fact("open", f"changed: {', '.join(changed)}")
    if not is_there:
        return Fact("skipped", f"the project has no {HANDOFF_FILE}")
    return Fact("done", "unchanged") if tree.changed is not None else Fact("skipped", "no git")


def secrets_fact(texts: Mapping[str, str]) -> Fact:
    """Judge the texts that people wrote into the session's own files, by their paths."""
    found = [one for path, text in texts.items() for one in find_suspected_secrets(path, text)]
    if found:
        return Fact("open", ", ".join(f"{one.where}: {one.kind} ({one.shown})" for one in found))
    return Fact("done", "none found")


def added_fact(
    requirement: Requirement,
    *,
    record: CommandRecord,
    verdicts: Sequence[Verdict],
    has_file: Callable[[str], bool],
) -> Fact:
    """The fact about a requirement that the project has added."""
    match requirement.verifier:
        case CommandVerifier(command=command):
            proof = find_proof(command, record)
            if isinstance(proof, Proof):
                return Fact("done", f"`{command}` passed, {timestamp(proof.at_ms)}")
            remedy = f"Run `{command}` by itself, after the last change."
            return Fact("open", f"`{command}`: {proof.reason}", remedy=remedy)
        case FileVerifier(file=file):
            if has_file(file):
                return Fact("done", file)
            return Fact("open", f"{file} is not there", remedy=f"Write `{file}`.")
        case VerdictVerifier(agent=agent):
            fact = verdict_fact(agent, verdicts)
            remedy = f"Delegate to `{agent}`, and complete the delegation with its verdict."
            return msgspec.structs.replace(fact, remedy=remedy)
        case None:
            return Fact("open", "nothing verifies it")


def tells_what_was_done(envelopes: Sequence[Envelope]) -> bool:
    """Whether the events of a session say by themselves what was done in it."""
    for envelope in envelopes:
        match envelope.event:
            case RunCompleted() | AgentCompleted(status="completed"):
                return True
            case ProtocolEndRequested(summary=summary) if summary.strip():
                return True
            case _:
                pass
    return False
