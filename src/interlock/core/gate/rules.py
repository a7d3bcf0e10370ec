"""The rules of the gate by name, and which of them a user can open."""

from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

Rule = Literal[
    "mode.disabled",
    "own.tool",
    "own.command",
    "tool.reads",
    "user.only",
    "path.protected",
    "secret.read",
    "state.unknown",
    "protocol.start",
    "mode.analysis",
    "mode.planning",
    "mode.coding",
    "coding.task",
    "coding.agreed",
    "subagent.mode",
    "path.reserved",
    "shell.unknown",
    "network.asked",
    "tool.unlisted",
]
RULES: tuple[Rule, ...] = get_args(Rule)
RuleClass = Literal["invariant", "advisory"]
"""An invariant rule denies; an advisory one allows, and only reports what it would deny."""

OPENABLE: tuple[Rule, ...] = (
    "mode.analysis",
    "mode.planning",
    "coding.task",
    "shell.unknown",
    "tool.unlisted",
    "path.reserved",
)
"""The rules that can be made advisory or be bypassed: those about the work. The others cannot:

- `user.only`, `coding.agreed`, `subagent.mode`, `path.protected` and `secret.read` guard what binds
  the agent. With one of them open, an agent could open all the rest by itself; with the secret of
  the server, it could claim to be the user.
- `network.asked` is a question to the user, who can list commands that need none
  (`network_commands`).
- `state.unknown` says that nothing is known, not even whose call it is. A rule that was opened for
  a session cannot be meant for an unknown one; `interlock mode disabled --force` is the way.
- `protocol.start` goes away once the requirement is met, or a person has waived it.
- `mode.disabled`, `mode.coding`, `own.tool`, `own.command` and `tool.reads` deny nothing.
"""


class Bypass(msgspec.Struct, frozen=True, rename="camel"):
    """A rule that the user has opened, with the reason. Its id names it wherever it was used."""

    id: str
    rule: Rule
    reason: str
    at_ms: int
    project: str = ""
    """The root of the only project in which it holds; empty: in every one."""
    until_ms: int | None = None

    def is_active_in(self, root: str, *, at_ms: int) -> bool:
        is_over = self.until_ms is not None and at_ms >= self.until_ms
        return not is_over and self.project in ("", root)


def wrongly_advisory_rules(rules: Mapping[Rule, RuleClass]) -> list[Rule]:
    """The rules that are set to advisory although they cannot be."""
    return [rule for rule, kind in rules.items() if kind == "advisory" and rule not in OPENABLE]
