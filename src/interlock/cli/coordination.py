"""`interlock preflight`, `who`, `reserve`, `release`, `takeover`: several agents, one project."""

import sys
import time
from typing import TYPE_CHECKING

import click
import msgspec

from interlock.app.coordination import holdings, preflight, takeovers
from interlock.app.coordination.holdings import ReservedPaths, ReserveRequest
from interlock.app.coordination.outside_mail import MailServerDown
from interlock.app.coordination.preflight import PreflightRequest
from interlock.app.coordination.takeovers import TakenOverIdentity, TakeoverWish
from interlock.app.protocol.presence import end_departed_sessions
from interlock.cli.authority import require_person
from interlock.cli.participant import CommandCaller, find_caller, paths_from_here
from interlock.cli.terminal import (
    EXIT_HALTED,
    EXIT_NEEDS_ANSWER,
    Stop,
    choose,
    expect,
    print_json,
    print_lines,
    print_message,
    print_text,
    refuse,
)
from interlock.core.coordination.preflight import PreflightQuestion, PreflightReport
from interlock.core.coordination.refusals import SnapshotFailed, span_text
from interlock.core.coordination.report_boxes import report_boxes

if TYPE_CHECKING:
    from collections.abc import Callable

_LETTERS = {"proceed": "P", "switch": "S", "wait": "W", "take-over": "T", "ignore": "I"}

_session_option = click.option("--session", "session_id", help="Which session; default: yours")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.command("preflight")
@click.option("--track", help="The line of work; default: the session's feature")
@click.option("--path", "paths", multiple=True, help="What you will change: a path or a glob")
@click.option("--item", "items", multiple=True, help="A work item that you want")
@click.option("--ignore", multiple=True, help="A stale agent to go on without")
@click.option("--plain", is_flag=True, help="Plain ASCII")
@_session_option
@_json_option
def preflight_command(
    track: str | None,
    paths: tuple[str, ...],
    items: tuple[str, ...],
    ignore: tuple[str, ...],
    session_id: str | None,
    *,
    plain: bool,
    as_json: bool,
) -> None:
    """Look around before work begins: who is here, and what is in the way

    It registers the session. Exit code 0: go on. 4: something has to be decided. 5: halted.
    """
    caller = find_caller(session_id, track=track)
    end_departed_sessions(caller.app)
    request = PreflightRequest(paths_from_here(caller.desk, paths), items, ignore)
    report = _run_preflight(caller, request)
    if as_json:
        first = report.questions[:1]
        prompt = msgspec.structs.asdict(first[0]) if first else {}
        print_json({**msgspec.structs.asdict(report), **prompt})
    else:
        print_text(report_boxes(report, is_plain=plain))
    if report.needs_answer and sys.stdin.isatty() and not as_json and not caller.is_agent:
        report = _ask(caller, request, report)
    if report.needs_answer:
        if not as_json:
            print_message("Something has to be decided first (exit code 4).")
        raise Stop(EXIT_NEEDS_ANSWER)


def _run_preflight(caller: CommandCaller, request: PreflightRequest) -> PreflightReport:
    report = preflight.run_preflight(caller.app, caller.desk, caller.who, request)
    if isinstance(report, MailServerDown):
        refuse(report.explain(), code=EXIT_HALTED)
    return expect(PreflightReport, report)


def _ask(
    caller: CommandCaller, request: PreflightRequest, report: PreflightReport
) -> PreflightReport:
    """Ask a person about each question; what is left unanswered stays one."""
    left: list[PreflightQuestion] = []
    for question in report.questions:
        letters = [_LETTERS[option] for option in question.options]
        answer = choose(question.prompt, letters, _LETTERS[question.default])
        match answer:
            case "T":
                outcome = expect(
                    TakenOverIdentity,
                    takeovers.take_over(
                        caller.app, caller.desk, None, TakeoverWish(question.about)
                    ),
                )
                _print_takeover(outcome)
            case "W":
                return _wait(caller, request)
            case "S":
                left.append(question)
            case _:
                continue
    return msgspec.structs.replace(report, questions=tuple(left))


def _wait(
    caller: CommandCaller, request: PreflightRequest, pause: "Callable[[float], None]" = time.sleep
) -> PreflightReport:
    seconds = caller.desk.thresholds.wait_ms // 1_000
    print_message(f"Looking again in {seconds} s (Ctrl-C ends this).")
    pause(seconds)
    report = _run_preflight(caller, request)
    print_text(report_boxes(report))
    return report


@click.command()
@click.option("--plain", is_flag=True, help="Plain ASCII")
@_json_option
def who(*, plain: bool, as_json: bool) -> None:
    """Show who works on this project, and what everybody holds

    Nothing is written.
    """
    caller = find_caller()
    who = None if caller.is_overseer else caller.who
    track = (who.track if who else None) or ""
    report = preflight.look_around(caller.app, caller.desk, who, track)
    if as_json:
        print_json(report)
    else:
        print_text(report_boxes(report, is_plain=plain))
        print_message(
            "These are the agents that registered with the project. `interlock session list` shows"
            " all sessions."
        )


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--minutes", type=click.IntRange(1, 1440), help="How long; default 60")
@click.option("--shared", is_flag=True, help="Others may share it")
@click.option("--reason", default="", help="What for; others are shown it")
@click.option("--proceed", is_flag=True, help="Though others hold them; they are told")
@_session_option
@_json_option
def reserve(
    paths: tuple[str, ...],
    minutes: int | None,
    reason: str,
    session_id: str | None,
    *,
    shared: bool,
    proceed: bool,
    as_json: bool,
) -> None:
    """Reserve paths of the project before you change them

    A path may be a directory or a glob (src/api/**, {a,b}/*.py); one that begins with ! is left
    out. All of them are reserved, or none. The same again renews them.
    """
    caller = find_caller(session_id)
    request = ReserveRequest(
        paths_from_here(caller.desk, paths),
        minutes * 60_000 if minutes else None,
        is_shared=shared,
        reason=reason,
        proceeds=proceed,
    )
    outcome = expect(
        ReservedPaths, holdings.reserve_paths(caller.app, caller.desk, caller.who, request)
    )
    _print_holdings(outcome, as_json=as_json)


@click.command()
@click.argument("paths", nargs=-1)
@_session_option
@_json_option
def release(paths: tuple[str, ...], session_id: str | None, *, as_json: bool) -> None:
    """Release paths that you have reserved; default: all of them"""
    caller = find_caller(session_id)
    outcome = expect(
        ReservedPaths,
        holdings.release_paths(
            caller.app, caller.desk, caller.who, paths_from_here(caller.desk, paths)
        ),
    )
    _print_holdings(outcome, as_json=as_json)


def _print_holdings(held: ReservedPaths, *, as_json: bool) -> None:
    if as_json:
        views = [
            {
                "pattern": one.pattern,
                "secondsLeft": (one.until_ms - held.now_ms) // 1_000,
                "exclusive": one.is_exclusive,
            }
            for one in held.reservations
        ]
        print_json({"identity": held.holder.id, "reservations": views})
        return
    print_lines(f"{held.holder.id} holds:" if held.reservations else "You hold nothing.")
    for one in held.reservations:
        shared = "" if one.is_exclusive else ", shared"
        print_lines(f"  {one.pattern}  for {span_text(one.until_ms - held.now_ms)}{shared}")


@click.command()
@click.argument("identity")
@click.option("--why", default="", help="Kept in the log, and told to the agent")
@click.option("--force", is_flag=True, help="Though it is not stale")
@click.option("--without-snapshot", is_flag=True, help="Do not save its uncommitted work first")
@_session_option
@_json_option
def takeover(
    identity: str,
    why: str,
    session_id: str | None,
    *,
    force: bool,
    without_snapshot: bool,
    as_json: bool,
) -> None:
    """Take over from an agent that is stale

    What it has reserved is released, its work items are open again, and its uncommitted work is
    saved under a ref of git. If it comes back, it is told, and refused until it registers anew.
    """
    if force:
        require_person("Taking over from an agent that is there")
    caller = find_caller(session_id)
    wish = TakeoverWish(identity, why, is_forced=force, needs_snapshot=not without_snapshot)
    who = None if caller.is_overseer else caller.who
    outcome = takeovers.take_over(caller.app, caller.desk, who, wish)
    if isinstance(outcome, SnapshotFailed):
        refuse(outcome.explain(), code=EXIT_NEEDS_ANSWER)
    outcome = expect(TakenOverIdentity, outcome)
    if as_json:
        print_json(outcome)
    else:
        _print_takeover(outcome)


def _print_takeover(taken: TakenOverIdentity) -> None:
    print_lines(f"Taken over from {taken.display} ({taken.identity}).")
    if taken.released:
        print_lines(f"  Released: {', '.join(taken.released)}")
    if taken.reopened:
        print_lines(f"  Open again: {', '.join(taken.reopened)}")
    if taken.snapshot:
        print_lines(
            f"  Its uncommitted work is saved: git diff HEAD...{taken.snapshot}",
        )
    if taken.is_process_alive:
        print_message("Its process is still there. It is told at its next call.")
