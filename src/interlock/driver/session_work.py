"""The work of one session from its worktree to its end, and what is reported on the way."""

import asyncio
from contextlib import suppress

import msgspec

from interlock.app.failures import StoreFailure
from interlock.app.unattended.forge_settings import why_outdated
from interlock.app.unattended.tool_gate import denials_of
from interlock.app.unattended.worktrees import (
    GitFailed,
    fetch_commits,
    filter_variables,
    make_other_worktrees,
    make_worktree,
    starting_commits,
)
from interlock.core.unattended.handed_work import files_by_repository, relative_paths
from interlock.core.unattended.journal import JournalNote, ProofEnded
from interlock.core.unattended.order import (
    FIRST_REPOSITORY,
    OtherRepository,
    Outcome,
    RepositoryPlace,
)
from interlock.core.unattended.proof import ProofCommand, ProofRun, judge_result
from interlock.core.views.counting import pluralise
from interlock.core.visible_text import make_visible
from interlock.core.workflow.handoff_artifacts import CodingHandoffArtifact
from interlock.driver.client_loop import ClientLoop
from interlock.driver.model_loop import ModelLoop
from interlock.driver.server_client import CallRefused
from interlock.driver.session_context import PauseWanted, SessionContext, Standstill
from interlock.driver.tools.proof_run import run_proof
from interlock.driver.tools.tool import Workplace, choose_level, make_workplace
from interlock.driver.tools.worktree_commit import (
    BranchEnd,
    CommitFailed,
    commit_changes,
    commit_named_files,
    has_changes,
)

SHUT_DOWN = "the driver was shut down; the next one goes on"
SUBJECT_CHARS_MAX = 72
_BY_USER = ("unattended_over", "not_possible_now", "not_unattended")


async def run_session(context: SessionContext) -> Outcome | None:
    """Work until it is over or stands still, and report that; the outcome if it is over.

    Raises:
        LeaseLost: another driver has taken over.
    """
    contexts = context.resources.contexts
    contexts[context.session] = context
    try:
        return await _run_and_report(context)
    except CallRefused as refused:
        if refused.code in _BY_USER:
            return None  # the user was faster
        return await _park(context, Standstill("failed", str(refused)))
    finally:
        del contexts[context.session]


async def _run_and_report(context: SessionContext) -> Outcome | None:
    if context.record.is_new:
        why = await asyncio.to_thread(why_outdated, context.resources.home, context.order)
        if why:
            await context.report("done", outcome="cancelled", detail=why)
            return "cancelled"
    try:
        await _prepare(context)
        if context.order.runner == "claude-code":
            await ClientLoop(context).run()
        else:
            await ModelLoop(context, run_session).run()
    except Standstill as standstill:
        return await _park(context, standstill)
    except PauseWanted:
        return await _set_aside(context)
    except StoreFailure as failure:
        return await _park(context, Standstill("storage", str(failure)))
    except asyncio.CancelledError:
        if context.sheet.state.wish != "cancel" and context.parent is not None:
            raise
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        if context.sheet.state.wish == "cancel":
            await context.report("done", outcome="cancelled")
            return "cancelled"
        return await _set_aside(context)
    return await _finish(context)


async def _prepare(context: SessionContext) -> None:
    settings, parent = context.settings, context.parent
    context.level = choose_level(settings.sandbox, is_read_only=context.order.is_read_only)
    if parent is not None:
        context.worktree, context.branch = parent.worktree, parent.branch
        context.others = parent.others
    else:
        try:
            fetched = await asyncio.to_thread(fetch_commits, context.order)  # it may take long
            wanted = (context.resources.home, context.session, fetched)
            async with context.resources.worktree_lock:
                context.worktree, context.branch = await asyncio.to_thread(make_worktree, *wanted)
                context.others = await asyncio.to_thread(make_other_worktrees, *wanted)
                places = (context.worktree, context.others)
                context.bases = await asyncio.to_thread(starting_commits, context.order, *places)
        except GitFailed as failed:
            raise Standstill("workspace", str(failed)) from failed
        context.order = fetched.with_commits(context.bases, fetched.merge_base)
    if context.level == "off" and (settings.sandbox == "require" or context.order.is_read_only):
        why = "it is work that only reads" if context.order.is_read_only else "`require` is set"
        raise Standstill("sandbox", f"tools cannot be confined here, and {why}")
    await context.report("working")
    workplace = make_workplace(
        context.resources.home,
        context.session,
        context.worktree,
        branch=context.branch,
        level=context.level,
        has_network=settings.has_network,
        others=context.others,
    )
    try:
        variables = await asyncio.to_thread(filter_variables, workplace.roots)
    except GitFailed as failed:
        raise Standstill("workspace", str(failed)) from failed
    context.workplace = msgspec.structs.replace(workplace, variables=variables)
    if not context.record.is_new:
        context.append(JournalNote("resumed", "the work goes on"))


async def _set_aside(context: SessionContext) -> None:
    """It pauses for the user; or it waits for the next driver, in its old place in the queue."""
    if context.is_shut_down:
        await context.report("queued", detail=SHUT_DOWN)
    else:
        await context.report("paused")


async def _park(context: SessionContext, standstill: Standstill) -> Outcome | None:
    is_given_up = standstill.reason == "stuck" and context.settings.on_stuck == "cancel"
    if context.parent is not None or is_given_up:
        # Nobody is asked about a child: its parent learns why it stopped, and decides.
        await context.report("done", outcome="gave_up", detail=standstill.detail)
        return "gave_up"
    with suppress(StoreFailure):  # that may be the very reason
        context.append(JournalNote("parked", f"{standstill.reason}: {standstill.detail}"))
    await context.report(
        "parked",
        reason=standstill.reason,
        detail=standstill.detail,
        resume_ms=standstill.resume_ms,
    )
    return None


async def _finish(context: SessionContext) -> Outcome:
    """Commit the result, prove it, and report what that shows."""
    if context.parent is not None or context.order.is_read_only:
        await context.report("done", outcome="success")
        return "success"
    commit, detail = await _commit(context, "", context.require_workplace())
    details = [detail, *await _commit_others(context)]
    commits = (commit, *(place.commit for place in context.others))
    bases = (context.order.base, *(other.base for other in context.order.repositories))
    is_committed = any(end and end != base for end, base in zip(commits, bases, strict=False))
    proofs = await _prove(context, commit) if is_committed and commit else ()
    outcome, why = judge_result(
        has_changes=is_committed or await has_changes(context.require_workplace()),
        is_committed=is_committed,
        proofs=proofs,
        denials=await asyncio.to_thread(denials_of, context.resources.home, context.session),
    )
    detail = "; ".join(filter(None, (why, *details)))
    await context.report("done", outcome=outcome, detail=detail, commit=commit, proofs=proofs)
    return outcome


async def _prove(context: SessionContext, commit: str) -> tuple[ProofRun, ...]:
    """Run the commands of the order on the commit; none twice for a driver that was ended."""
    known = context.record.proofs
    for wanted in context.order.proofs:
        if (wanted.command, commit) not in known:
            context.append(await _run_proof(context, wanted, commit))
    return tuple(known[wanted.command, commit] for wanted in context.order.proofs)


async def _run_proof(context: SessionContext, wanted: ProofCommand, commit: str) -> ProofEnded:
    seconds = context.settings.proof_minutes * 60
    try:
        proof = await run_proof(context.require_workplace(), wanted, commit, seconds=seconds)
    except OSError as error:
        raise Standstill("workspace", f"`{wanted.command}` could not be run: {error}") from error
    return ProofEnded(proof)


async def _commit_others(context: SessionContext) -> list[str]:
    """Commit what was changed in the other repositories; return what there is to say about it."""
    details, places = list[str](), list[RepositoryPlace]()
    for place in context.others:
        workplace = context.require_workplace().in_repository(place.name)
        commit, detail = await _commit(context, place.name, workplace)
        details.append(detail)
        places.append(msgspec.structs.replace(place, commit=commit))
    context.others = tuple(places)
    return details


async def _commit(context: SessionContext, name: str, workplace: Workplace) -> tuple[str, str]:
    """Commit what was changed in a repository: the commit, and what there is to say about it."""
    repository = context.order.find_repository(name or FIRST_REPOSITORY)
    assert repository is not None, "it is one of the order"
    is_pushed = repository.delivery is not None and repository.delivery.needs_push
    if not (context.settings.does_commit or is_pushed):
        return "", ""
    in_it = f" in {name}" if name else ""
    try:
        if context.record.handed.handoff is None or not is_pushed:
            end = await commit_changes(workplace, _commit_message(context))
            count = pluralise(end.files_filtered, "changed file")
            unfiltered = f"{count}{in_it} not in the commit: no git filter runs in the worktree"
            return end.commit, unfiltered if end.files_filtered else ""
        end = await _commit_named(context, context.record.handed.handoff, repository, workplace)
    except (CommitFailed, OSError) as failed:
        return "", f"what was changed{in_it} is not committed: {failed}"
    count, them = pluralise(end.files_left, "changed file"), "it" if end.files_left == 1 else "them"
    unnamed = f"{count}{in_it} not in the commit: the hand-off does not name {them}"
    return end.commit, unnamed if end.files_left else ""


async def _commit_named(
    context: SessionContext,
    handoff: CodingHandoffArtifact,
    repository: OtherRepository,
    workplace: Workplace,
) -> BranchEnd:
    """Of what is pushed, only files that the work has named are committed.

    Whatever else is in the worktree is nobody's decision.
    """
    name = "" if repository.name == FIRST_REPOSITORY else repository.name
    named = files_by_repository(handoff.files_changed, context.worktrees)[name]
    files, unsafe = relative_paths(named, str(workplace.worktree))
    if unsafe:
        raise CommitFailed(f"the hand-off names `{unsafe[0]}`, which is not in the worktree")
    return await commit_named_files(workplace, _commit_message(context), repository.base, files)


def _commit_message(context: SessionContext) -> str:
    subject = " ".join(context.order.goal.split())[:SUBJECT_CHARS_MAX]
    parts = (subject, context.record.handed.notes, f"Interlock-Session: {context.session}")
    return make_visible("\n\n".join(parts)).encode("utf-8", "replace").decode()
