"""`interlock gate`: show why something was denied, try what would be, and open rules."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from interlock.agents.hosts.hook_payload import decode_payload
from interlock.agents.hosts.registry import NAMES, host_named
from interlock.app.clock import SystemClock
from interlock.app.data_home import data_home
from interlock.app.gate import bypasses, gate_journal
from interlock.app.gate import tool_calls as use
from interlock.app.gate.integrity import governed_root
from interlock.app.gate.policy import policy_remarks
from interlock.app.refusals import ProjectNotOptedIn
from interlock.cli.authority import require_person, require_user
from interlock.cli.terminal import (
    EXIT_MISUSE,
    EXIT_REFUSED,
    Stop,
    expect,
    print_error,
    print_json,
    print_lines,
    print_table,
    refuse,
)
from interlock.core.gate.own_calls import requested_by_tool
from interlock.core.gate.rules import RULES, Bypass, Rule
from interlock.core.gate.tool_call import parse_tool_call

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")


@click.group()
def bypass() -> None:
    """Open a rule of the gate for a reason, and see what is open"""


@bypass.command()
@click.argument("rule", type=click.Choice(RULES), metavar="RULE")
@click.option("--reason", required=True, help="Why; it is kept with each use")
@click.option(
    "--project",
    type=click.Path(path_type=Path, exists=True),
    help="Only in the project there; default: in every one",
)
@click.option("--days", type=click.IntRange(1, 3650), help="For so long; default: until removed")
@_json_option
def add(rule: str, reason: str, project: Path | None, days: int | None, *, as_json: bool) -> None:
    """Let pass what RULE denies; each time is kept in `interlock gate log`"""
    require_person("Opening a rule")
    root = governed_root(data_home(), project) if project else None
    if project and root is None:
        refuse(ProjectNotOptedIn(str(project.absolute())).explain())
    checked_rule: Rule = next(name for name in RULES if name == rule)
    now_ms = SystemClock().now_ms()
    added = expect(
        Bypass, bypasses.add(data_home(), checked_rule, reason, root=root, days=days, at_ms=now_ms)
    )
    if as_json:
        print_json(added)
        return
    print_lines(
        f"{added.id} opens {added.rule} {_scope_text(added)}, {_expiry_text(added, now_ms)}."
    )
    print_lines(f"To close it: interlock gate bypass remove {added.id}")


@bypass.command("list")
@_json_option
def list_command(*, as_json: bool) -> None:
    """List the rules that were opened"""
    require_user("Looking at what was opened")
    entries = bypasses.all_bypasses(data_home())
    if as_json:
        print_json(entries)
        return
    if not entries:
        print_lines("No rule is open.")
    now_ms = SystemClock().now_ms()
    print_table(
        [
            (entry.id, entry.rule, _expiry_text(entry, now_ms), _scope_text(entry), entry.reason)
            for entry in entries
        ]
    )


@bypass.command()
@click.argument("bypass_id")
@_json_option
def remove(bypass_id: str, *, as_json: bool) -> None:
    """Close a rule again"""
    require_user("Closing a rule")
    removed = expect(Bypass, bypasses.remove(data_home(), bypass_id))
    if as_json:
        print_json(removed)
    else:
        print_lines(f"{removed.id} is gone: {removed.rule} holds again.")


def _scope_text(entry: Bypass) -> str:
    return f"in {entry.project}" if entry.project else "in every project"


def _expiry_text(entry: Bypass, now_ms: int) -> str:
    if entry.until_ms is None:
        return "until it is removed"
    day = datetime.fromtimestamp(entry.until_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"over since {day}" if bypasses.is_expired(entry, now_ms) else f"until {day}"


@click.group()
def gate() -> None:
    """See what was denied and why, and try what would be"""


gate.add_command(bypass)


@gate.command("log")
@click.option("--limit", type=int, default=20, help="How many")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def log_command(limit: int, *, as_json: bool) -> None:
    """List what was denied, asked about or let through, newest last"""
    events = ("pre-tool", gate_journal.PEER_CHECK)
    lines = [line for line in gate_journal.journal_lines(data_home()) if line.event in events]
    lines = lines[-limit:]
    if as_json:
        print_json(lines)
        return
    if not lines:
        print_lines("Nothing was denied.")
    rows: list[tuple[str, ...]] = []
    for line in lines:
        rows.append((line.id, line.answer, line.rule, line.mode, line.tool, line.detail[:60]))
        rows += [("", "", "", "", "", f"-> let through by {line.opened}")] if line.opened else []
        rows += [("", "", "", "", "", f"-> notice: {line.notice}")] if line.notice else []
    print_table(rows)


@gate.command()
@click.argument("gate_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def explain(gate_id: str, *, as_json: bool) -> None:
    """Say why a call was denied or let through; GATE_ID stands in the denial and in the log"""
    matching_lines = [
        line for line in gate_journal.journal_lines(data_home()) if line.id.startswith(gate_id)
    ]
    if not matching_lines:
        print_error(
            f"No decision `{gate_id}` was kept", "`interlock gate log` shows those that were."
        )
        raise Stop(EXIT_REFUSED)
    line = matching_lines[-1]
    if as_json:
        print_json(line)
        return
    print_lines(f"{line.id}: {line.answer} by {line.rule}, mode {line.mode}")
    print_lines(f"tool {line.tool} of {line.host}: {line.detail}")
    print_lines(f"why: {line.reason}", f"what to do: {line.remedy}")
    if line.opened:
        print_lines(f"let through by: {line.opened}")
    if line.notice:
        print_lines(f"notice: {line.notice}")
    root = governed_root(data_home(), Path.cwd())
    for remark in policy_remarks(data_home(), root, at_ms=SystemClock().now_ms()) if root else ():
        print_lines(f"note: {remark}")


@gate.command()
@click.option("--host", type=click.Choice(NAMES), default="claude-code", help="The client")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
def test(host: str, *, as_json: bool) -> None:
    """Say what would be decided about a tool call; its payload comes on stdin"""
    client = host_named(host)
    try:
        payload = decode_payload(client, sys.stdin.buffer.read())
    except ValueError as error:
        hint = 'It looks like this: {"tool_name": "Bash", "tool_input": {"command": "make"}}'
        print_error(f"The payload on stdin is not what a client sends: {error}", hint)
        raise Stop(EXIT_MISUSE) from None
    root = governed_root(data_home(), Path(payload.cwd or "."))
    if root is None:
        print_lines("allow: the project has not opted in")
        return
    tool = payload.tool_name
    call = parse_tool_call(host, client.class_of(tool), tool, payload.tool_input, payload.cwd)
    is_own = call.kind == "own"
    verdict = use.judge(
        data_home(),
        root,
        call,
        payload.session_id,
        call_id="test",
        mode_request=requested_by_tool(call.tool, payload.tool_input) if is_own else None,
    )
    remarks = policy_remarks(data_home(), root, at_ms=SystemClock().now_ms())
    if as_json:
        answer = {"class": call.kind, "decision": verdict.decision, "state": verdict.state}
        print_json({**answer, "remarks": remarks})
        return
    decision = verdict.decision
    print_lines(f"{decision.answer}: {decision.rule} ({call.tool} is of class {call.kind})")
    if decision.reason:
        print_lines(f"{decision.reason}. {decision.remedy}")
    if decision.opened:
        print_lines(f"let through by: {decision.opened}")
    for remark in remarks:
        print_lines(f"note: {remark}")
