"""What is delivered of unattended work, where to, and what is in the way. Nothing is done here."""

import re
from collections.abc import Sequence

import msgspec

from interlock.core.ids import SessionId
from interlock.core.session.delivery_texts import comment_text, request_description, request_title
from interlock.core.unattended.delivery import DESPITE_SECRETS, DeliveryOutcome, DeliveryRecord
from interlock.core.unattended.handed_work import HandedWork, files_by_repository, relative_paths
from interlock.core.unattended.order import DeliveryPart, DeliveryWish, UnattendedState

_CI_FILES = re.compile(
    r"\.(github/(workflows|actions)|circleci|woodpecker|buildkite|gitea/workflows)/"
    r"|(\.gitlab-ci|\.travis|azure-pipelines|bitbucket-pipelines|\.drone)\.ya?ml$|Jenkinsfile$",
    re.IGNORECASE,
)
"""Files by which a pushed branch would run what a model wrote where there is a network."""
FOUND_MAX = 10
"""The suspected secrets that are named; of others there is only the number."""


class RepositoryResult(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The part of the result that is in one repository."""

    name: str
    """Its name in the order; empty for the one that the order is about."""
    path: str
    """The user's checkout."""
    branch: str
    commit: str
    base: str
    worktree: str = ""


class PlannedDelivery(msgspec.Struct, frozen=True, rename="camel"):
    """The delivery of one result, with every word of it."""

    result: RepositoryResult
    wish: DeliveryWish
    title: str
    description: str
    comment: str
    files: tuple[str, ...] = ()
    """The files that the work has named."""
    skipped: dict[DeliveryPart, str] = {}
    """The parts that are not done, and why."""

    def wants(self, part: DeliveryPart) -> bool:
        is_wanted = self.wish.needs_push if part == "push" else part in self.wish.parts
        return is_wanted and part not in self.skipped

    def skip(self, part: DeliveryPart, why: str) -> "PlannedDelivery":
        return msgspec.structs.replace(self, skipped={**self.skipped, part: why})


class CommitFacts(msgspec.Struct, frozen=True):
    """Everything that is known of the commit that is to be pushed."""

    branch_commit: str
    """The commit at which the branch stands now; empty if there is no such branch."""
    is_genuine: bool = True
    """False: the worktree leads to another repository than it was made for."""
    parents: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """What looks like a secret, each with its place."""
    is_scanned: bool = True
    """False: there is more than could be looked through."""
    filtered: tuple[str, ...] = ()
    """The files that need a git filter, which did not run when they were committed."""


def plan_deliveries(
    session: SessionId, state: UnattendedState, handed: HandedWork
) -> tuple[PlannedDelivery, ...]:
    """One for each repository whose result goes somewhere."""
    planned: list[PlannedDelivery] = []
    places = {"": state.worktree, **{place.name: place.worktree for place in state.others}}
    for result, wish in _results(state):
        handoff = handed.handoff
        named = files_by_repository(handoff.files_changed, places)[result.name] if handoff else ()
        files, _ = relative_paths(named, result.worktree)
        plan = PlannedDelivery(
            result,
            wish,
            request_title(state.order),
            request_description(session, state, handed),
            comment_text(session, state, handed),
            files,
        )
        planned.append(_without_idle_parts(plan, state, has_handoff=handoff is not None))
    return tuple(planned)


def _results(state: UnattendedState) -> list[tuple[RepositoryResult, DeliveryWish]]:
    order, found = state.order, list[tuple[RepositoryResult, DeliveryWish]]()
    if order.delivery is not None:
        first = RepositoryResult(
            "", order.repository, state.branch, state.commit, order.base, state.worktree
        )
        found.append((first, order.delivery))
    for place in state.others:
        other = order.find_repository(place.name)
        if other is not None and other.delivery is not None:
            result = RepositoryResult(
                place.name, other.path, place.branch, place.commit, other.base, place.worktree
            )
            found.append((result, other.delivery))
    return found


def _without_idle_parts(
    plan: PlannedDelivery, state: UnattendedState, *, has_handoff: bool
) -> PlannedDelivery:
    why = ""
    if state.order.is_read_only:
        why = "it was work that only reads"
    elif not has_handoff:
        why = "no `coding_handoff` was submitted that names the files"
    elif plan.result.commit and plan.result.commit == plan.result.base:
        why = "no file that was named has changed"
    for part in ("push", "request"):
        if why and plan.wants(part):
            plan = plan.skip(part, why)
    if plan.wants("comment") and not plan.wish.number and not plan.wants("request"):
        plan = plan.skip("comment", "there is no request to comment on")
    return plan


def objection_to(
    plan: PlannedDelivery, facts: CommitFacts, *, accepts_secrets: bool, session: SessionId
) -> str:
    """Why this commit is not pushed; empty if it may be."""
    result = plan.result
    if not result.commit:
        return "what was changed is not committed"
    if not facts.is_genuine:
        return f"`{result.worktree}` leads to another repository than it was made for"
    if facts.branch_commit != result.commit:
        stands = f"it is {facts.branch_commit[:12]}" if facts.branch_commit else "it is gone"
        reported = f"HEAD is not {result.commit[:12]}, which the driver has reported"
        return f"{reported}: {stands}. Look at `git log {result.branch}`, and push it yourself"
    if facts.parents != (result.base,):
        return f"{result.commit[:12]} is not one commit after {result.base[:12]}"
    if unnamed := [name for name in facts.files if name not in plan.files]:
        return f"the commit has files that the hand-off does not name: {_first_of(unnamed)}"
    if steering := [name for name in facts.files if _CI_FILES.match(name)]:
        advice = f"Look at `git show {result.commit[:12]}`, and push it yourself"
        return f"it changes what CI runs with its secrets: {_first_of(steering)}. {advice}"
    if facts.filtered:
        reason = "no git filter (Git LFS, git-crypt) ran on them when they were committed"
        return f"it changes files that need one: {_first_of(facts.filtered)}; {reason}"
    if accepts_secrets:
        return ""
    despite = f"If that is all right: `interlock driver deliver {session} {DESPITE_SECRETS}`"
    if facts.secrets:
        return f"there may be secrets in it: {_first_of(facts.secrets)}. {despite}"
    if not facts.is_scanned:
        return f"there is too much in it to look for secrets. {despite}"
    return ""


def ending_of(records: Sequence[DeliveryRecord]) -> tuple[DeliveryOutcome, str]:
    """How a delivery ends in which these parts have come to an end, and in which words."""
    if refused := next((one for one in records if one.outcome == "refused"), None):
        name = f" of {refused.repository}" if refused.repository else ""
        return "refused", f"{refused.part}{name}: {refused.detail}"
    parts = [one for one in records if one.part != "check"]
    skipped = "; ".join(f"{one.part}: {one.detail}" for one in parts if one.outcome == "skipped")
    is_done = any(one.outcome == "done" for one in parts)
    return "delivered" if is_done else "skipped", skipped


def _first_of(items: Sequence[str]) -> str:
    more = f" and {len(items) - FOUND_MAX} more" if len(items) > FOUND_MAX else ""
    return f"{', '.join(items[:FOUND_MAX])}{more}"
