"""The state of a session as the gate knows it, and the policy of a project."""

from typing import Literal, TypeAlias, get_args

import msgspec

from interlock.core.gate.rules import Bypass, Rule

Mode = Literal["analysis", "planning", "coding", "disabled"]
MODES: tuple[Mode, ...] = get_args(Mode)
LOOSE_MODES: tuple[Mode, ...] = ("coding", "disabled")
"""The modes in which an agent may change files. Whoever is no agent may choose the others."""
Profile = Literal["light", "standard", "strict"]
PROFILES: tuple[Profile, ...] = get_args(Profile)


def mode_named(name: str) -> Mode | None:
    return next((mode for mode in MODES if mode == name), None)


class GateRow(msgspec.Struct, frozen=True, rename="camel"):
    """A session as the gate sees it: small enough to be read before every tool call."""

    session: str
    mode: Mode
    is_started: bool
    """Whether the protocol's start is complete."""
    task: str = ""
    may_code: bool = False
    """Whether the user has let this session go on to coding, and not gone back since."""
    version: int = 0
    """The version of the session's stream, to tell an older row from a newer one. It is 0 as long
    as nothing of the session is recorded."""
    root: str = ""
    """The project of the session, whose policy holds wherever the conversation goes."""
    watched: str = ""
    """The stamps of the files that make the gate work, when they were last looked at."""
    project: str = ""
    """The project, as all of its worktrees call it; others may have reserved paths of it."""


class UnknownState(msgspec.Struct, frozen=True):
    """The state could not be read, or makes no sense."""

    why: str
    remedy: str = ""
    """The way out that this cause has; without one, the usual ones are told."""
    is_askable: bool = False
    """Whether the user is asked about commands and tools, instead of a denial."""


GateState: TypeAlias = GateRow | UnknownState


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """The rules of a project beyond the modes; `trust.effective_policy` makes it."""

    profile: Profile = "standard"
    protected: tuple[str, ...] = ()
    """Path endings that no agent may write, besides those that are always protected."""
    reading_tools: tuple[str, ...] = ()
    """Tools of other MCP servers that only read."""
    agent_may_code: bool = True
    """Whether an agent may ask to go on to coding; with False only the user does that."""
    advisory: tuple[Rule, ...] = ()
    """Rules that only report what they would deny."""
    bypasses: tuple[Bypass, ...] = ()
    enforces_reservations: bool = False
    """Whether what others have reserved is denied; otherwise it is only told."""
    network_commands: tuple[str, ...] = ()
    """The beginnings of commands that use a network or a daemon without a question."""

    @property
    def coding_needs_task(self) -> bool:
        return self.profile == "strict"

    @property
    def first_mode(self) -> Mode:
        return "coding" if self.profile == "light" else "analysis"

    @property
    def is_simple(self) -> bool:
        """Whether the class of a tool and the mode decide nearly everything.

        Never where a rule is open, because each use of that must be journaled.
        """
        demands = self.protected or self.reading_tools or self.coding_needs_task
        return not demands and not self.advisory and not self.bypasses


class ModeObjection(msgspec.Struct, frozen=True):
    """The reason why an agent may not change the mode by itself, and what can be done instead."""

    reason: str
    remedy: str
    is_askable: bool = False
    """Whether it may be changed once the user, asked by the host, has agreed."""
    needs_task: bool = False
    """Whether the same request with a task gets further."""


def mode_change_objection(
    current: Mode, requested: Mode, policy: Policy, *, has_task: bool, may_code: bool
) -> ModeObjection | None:
    """Return why an agent may not make this change of mode; None if it may.

    `may_code`: the user has allowed coding in this session before, and has not left it since.
    """
    by_user = (
        f"The user can type `/mode {requested}`, run `interlock mode {requested}` in a terminal,"
        " or use the console."
    )
    if requested == "disabled":
        return ModeObjection("only the user switches the gate off", by_user)
    if current == "disabled":
        return ModeObjection("only the user switches the gate on again", by_user)
    if requested != "coding" or current == "coding":
        return None
    if not policy.agent_may_code:
        return ModeObjection("only the user switches to coding in this project", by_user)
    if policy.coding_needs_task and not has_task:
        remedy = "Repeat the call with a task: what the coding is for."
        return ModeObjection("coding needs a task here", remedy, needs_task=True)
    if policy.profile == "light" or may_code:
        return None
    reason = "an agent needs the user's agreement for that, and this session does not have it"
    return ModeObjection(reason, by_user, is_askable=True)


CODING_QUESTION = "The agent asks to switch to coding, in which it edits files and runs commands"
CODING_CONSENT = "A yes holds for this session, until you set another mode."


def coding_advice(policy: Policy, *, can_ask: bool, may_code: bool) -> str:
    """Return how an agent gets to coding, in this project and client.

    `can_ask`: the client can put the question to its user. The user's way is always named: the
    call fails where the store cannot be used.
    """
    by_user = "type `/mode coding`, or run `interlock mode coding` in a terminal"
    needs_user = policy.profile != "light" and not may_code
    if not policy.agent_may_code or (needs_user and not can_ask):
        return f"To change anything, the user has to {by_user}."
    task = " and a task" if policy.coding_needs_task else ""
    asked = ": the user is asked once" if needs_user else ""
    call = f"call `session` with mode `coding`{task}{asked}"
    return f"To change anything, {call}. The user can also {by_user}."
