"""`interlock agents`, `agent` and `decision`: work that one agent hands to another."""

from pathlib import Path
from typing import get_args

import click

from interlock.app.callers.caller import local_caller, session_meant
from interlock.app.context import App, open_app
from interlock.app.data_home import data_home
from interlock.app.protocol import delegations
from interlock.cli.session_state import refuse_caller
from interlock.cli.terminal import expect, print_json, print_lines, print_message, print_table
from interlock.core.ids import SessionId
from interlock.core.protocol.delegation import CompletionRequest, DecisionRequest, DelegationRequest
from interlock.core.protocol.specialists import SPECIALISTS, normalise_agent, unknown_agent_warning
from interlock.core.session.delegation_events import AgentStatus, DecisionType, VerdictGiven
from interlock.core.session.orchestration import Decision, Orchestration, outcome_of
from interlock.core.session.verdict_outcomes import OUTCOMES, VerdictDecision
from interlock.core.views.delegated_work import delegation_lines, handoff_lines, output_lines

STATUSES: tuple[AgentStatus, ...] = get_args(AgentStatus)
TYPES: tuple[DecisionType, ...] = get_args(DecisionType)
VERDICTS = (*get_args(VerdictDecision), *OUTCOMES)
_SESSION = click.option(
    "--session", "session_id", help="Which session; default: yours, or the only one here"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.group()
def agents() -> None:
    """Look at the specialist agents that are known by name"""


@agents.command("list")
@_JSON
def list_agents(*, as_json: bool) -> None:
    """List the known agents; others can be delegated to as well"""
    if as_json:
        print_json([{"agent": name, "does": does} for name, does in SPECIALISTS.items()])
        return
    print_table(list(SPECIALISTS.items()))


@click.group()
def agent() -> None:
    """Hand work to an agent, and take its result"""


@agent.command()
@click.argument("name")
@click.argument("prompt")
@click.option("--reason", default="", help="Why it is handed on")
@click.option("--artifact", "artifacts", multiple=True, help="A file that belongs to it")
@_SESSION
@_JSON
def invoke(
    name: str,
    prompt: str,
    reason: str,
    artifacts: tuple[str, ...],
    session_id: str | None,
    *,
    as_json: bool,
) -> None:
    """Record that an agent is given work"""
    app, session = _open_session(session_id)
    chosen = normalise_agent(name)
    request = DelegationRequest(chosen, prompt, artifacts=artifacts, reason=reason)
    outcome = expect(delegations.StartedDelegation, delegations.delegate(app, session, request))
    if warning := unknown_agent_warning(chosen):
        print_message(f"note: {warning}")
    if as_json:
        print_json(outcome)
        return
    print_lines(f"{outcome.invocation.id}  {chosen}  in {session}")
    for handoff in outcome.taken_over:
        print_lines(*handoff_lines(handoff))
    if outcome.earlier:
        print_lines("What it found before:", *output_lines(outcome.earlier))


@agent.command()
@click.argument("name")
@click.argument("summary")
@click.option("--status", type=click.Choice(STATUSES), default="completed", help="How it ended")
@click.option("--recommend", "recommendations", multiple=True, help="What it recommends")
@click.option("--blocker", "blockers", multiple=True, help="What stands in the way")
@click.option("--artifact", "artifacts", multiple=True, help="A file that it made")
@click.option("--handoff-to", default="", help="The agent that goes on")
@click.option("--handoff-reason", default="", help="Why that one")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Its verdict")
@click.option("--confidence", type=click.IntRange(0, 100), help="Of the verdict, in %")
@_SESSION
@_JSON
def complete(
    name: str,
    summary: str,
    *,
    status: AgentStatus,
    recommendations: tuple[str, ...],
    blockers: tuple[str, ...],
    artifacts: tuple[str, ...],
    handoff_to: str,
    handoff_reason: str,
    verdict: str | None,
    confidence: int | None,
    session_id: str | None,
    as_json: bool,
) -> None:
    """Record the result of an agent, by its name or the id of the delegation"""
    app, session = _open_session(session_id)
    outcome = outcome_of(verdict, has_blockers=bool(blockers)) if verdict else None
    request = CompletionRequest(
        name,
        summary,
        status,
        artifacts,
        recommendations,
        blockers,
        normalise_agent(handoff_to),
        handoff_reason,
        verdict=VerdictGiven(outcome, confidence, summary, (), blockers) if outcome else None,
    )
    done = expect(delegations.CompletedDelegation, delegations.complete(app, session, request))
    if as_json:
        print_json(done)
        return
    print_lines(f"{done.id}  {done.agent} {done.status}", *delegation_lines(done.work))


@click.group()
def decision() -> None:
    """Record what was decided, and who agrees"""


@decision.command()
@click.argument("description")
@click.option("--because", "rationale", required=True, help="Why")
@click.option("--type", "kind", type=click.Choice(TYPES), default="technical", help="What kind")
@click.option("--by", default="orchestrator", help="The agent that decided")
@_SESSION
@_JSON
def add(
    description: str,
    *,
    rationale: str,
    kind: DecisionType,
    by: str,
    session_id: str | None,
    as_json: bool,
) -> None:
    """Record a decision"""
    app, session = _open_session(session_id)
    request = DecisionRequest(kind, description, rationale, normalise_agent(by))
    outcome = expect(Decision, delegations.record_decision(app, session, request))
    if as_json:
        print_json(outcome)
        return
    print_lines(f"{outcome.id}  {outcome.description}")


@decision.command()
@click.argument("decision_id")
@click.argument("judgement", type=click.Choice(("approve", "reject")))
@click.option("--by", required=True, help="The agent that judges")
@_SESSION
@_JSON
def judge(
    decision_id: str, judgement: str, by: str, session_id: str | None, *, as_json: bool
) -> None:
    """Record that an agent approves of a decision, or rejects it"""
    app, session = _open_session(session_id)
    work = expect(
        Orchestration,
        delegations.judge_decision(
            app, session, decision_id, normalise_agent(by), is_approved=judgement == "approve"
        ),
    )
    judged = next(one for one in work.decisions if one.id == decision_id)
    if as_json:
        print_json(judged)
        return
    print_lines(
        f"{judged.id}  approved by: {', '.join(judged.approved_by) or '-'};"
        f" rejected by: {', '.join(judged.rejected_by) or '-'}"
    )


def _open_session(session_id: str | None) -> tuple[App, SessionId]:
    app = open_app(data_home())
    session = session_meant(app, local_caller(app, Path.cwd(), session=session_id))
    if not isinstance(session, str):
        refuse_caller(session)
    return app, session
