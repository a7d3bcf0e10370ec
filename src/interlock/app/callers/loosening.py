"""Decide whether a request to the server may loosen what agents may do, by the process behind it.

The user's secret alone is not enough, because an agent may have read it. This stops an agent that
errs, not one that attacks: see `agent_detection`.
"""

from collections.abc import Sequence

import msgspec

from interlock.app.callers import agent_detection
from interlock.app.context import App
from interlock.app.gate import gate_journal
from interlock.core.explanation import Explanation
from interlock.workspace.machine import processes
from interlock.workspace.machine.peers import Address, connected_processes
from interlock.workspace.machine.processes import Process
from interlock.workspace.machine.spool import JournalLine

WAYS = (
    "Type it in the conversation (`/mode coding`), run the command in a terminal of yours, or use"
    " the console that `interlock console` opens from there."
)
_ID_BYTES = 5


class RequestOrigin(msgspec.Struct, frozen=True):
    connection: tuple[Address, Address] | None
    """The addresses of the client and of the server."""
    is_relayed: bool
    """Whether a proxy has sent it for a process that is not known."""
    has_cookie: bool
    """Whether it comes with a cookie. Each was made for a person at a terminal."""


def check_loosening(app: App, verb: str, origin: RequestOrigin) -> Explanation | None:
    """Return the refusal if no person sent the request. The gate's journal has each decision."""
    pids = connected_processes(*origin.connection) if origin.connection else ()
    peers = processes.running_processes(pids)
    evidence = _evidence_against(app, peers, origin)
    refusal = Explanation("needs_person", f"`{verb}` wants a person, and {evidence}", WAYS)
    # Neither command lines nor headers: they may hold the secret.
    who = ", ".join(f"{peer.name} (process {peer.pid})" for peer in peers) or "an unknown process"
    line = JournalLine(
        id=f"gate_{app.entropy(_ID_BYTES).hex()}",
        at_ms=app.clock.now_ms(),
        host="server",
        event=gate_journal.PEER_CHECK,
        tool=verb,
        answer="deny" if evidence else "allow",
        rule="user.only",
        reason=refusal.error if evidence else "A person's browser, or a program that no agent runs",
        remedy=refusal.hint if evidence else "",
        mode="-",
        detail=f"asked by {who}{', with a cookie' if origin.has_cookie else ''}",
    )
    gate_journal.append(app.home, line)
    return refusal if evidence else None


def _evidence_against(app: App, peers: Sequence[Process], origin: RequestOrigin) -> str:
    """The evidence that no person sent the request, as words after "and"; empty if one did."""
    for peer in peers:
        variables = processes.environment_of(peer.pid)
        if evidence := agent_detection.evidence_of_agent(app.home, variables, peer.pid):
            return evidence
    is_accepted = origin.has_cookie or (peers and not origin.is_relayed)
    return "" if is_accepted else "the process that asks for it is not known"
