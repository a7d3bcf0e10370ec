"""What holds in a project: what its config asks, as far as it is trusted, and the user's word.

A project's config comes with a clone, so anybody may have written it. It can always make the gate
stricter. What would let an agent do more than it may in a project that asks for nothing counts
only when the user has trusted that very file.
"""

from collections.abc import Iterable

import msgspec

from interlock.core.gate.notice import NoticeLimit
from interlock.core.gate.rules import OPENABLE, Bypass, Rule, RuleClass
from interlock.core.gate.state import Policy, Profile


class ProjectPolicy(msgspec.Struct, frozen=True):
    """What a project's config asks of the gate."""

    profile: Profile = "standard"
    protected: tuple[str, ...] = ()
    reading_tools: tuple[str, ...] = ()
    agent_may_code: bool = True
    rules: dict[Rule, RuleClass] = {}
    digest: str = ""
    """Of the file: what is trusted is this and nothing else."""
    stamp: str = ""
    """What the file was known by when it was read: the fast hook looks no closer."""


class UserPolicy(msgspec.Struct, frozen=True):
    """What the user has chosen for every project on this machine."""

    rules: dict[Rule, RuleClass] = {}
    notice_limit: NoticeLimit = NoticeLimit()


class MergedPolicy(msgspec.Struct, frozen=True):
    policy: Policy
    ignored_settings: tuple[str, ...] = ()
    """The settings that do not count because nobody has trusted them. Never what they are set to:
    this is read by agents, and those texts are a stranger's."""


def loosening_settings(project_policy: ProjectPolicy) -> tuple[str, ...]:
    """The settings with which an agent may do more than in a project that asks for nothing."""
    found = ["profile"] if project_policy.profile == "light" else []
    found += ["reading_tools"] if project_policy.reading_tools else []
    return (*found, *(f"rules.{rule}" for rule in _advisory_rules(project_policy.rules)))


def effective_policy(
    project_policy: ProjectPolicy,
    user_policy: UserPolicy,
    bypasses: Iterable[Bypass],
    *,
    is_trusted: bool,
) -> MergedPolicy:
    """`bypasses` are those that hold in the project now."""
    advisory = {
        *_advisory_rules(user_policy.rules),
        *(_advisory_rules(project_policy.rules) if is_trusted else ()),
    }
    # What the project wants to be firm is firm, whatever the user has chosen for all projects.
    firm = {rule for rule, kind in project_policy.rules.items() if kind == "invariant"}
    policy = Policy(
        profile="standard"
        if project_policy.profile == "light" and not is_trusted
        else project_policy.profile,
        protected=project_policy.protected,
        reading_tools=project_policy.reading_tools if is_trusted else (),
        agent_may_code=project_policy.agent_may_code,
        advisory=tuple(rule for rule in OPENABLE if rule in advisory - firm),
        bypasses=tuple(bypasses),
    )
    return MergedPolicy(policy, () if is_trusted else loosening_settings(project_policy))


def _advisory_rules(rules: dict[Rule, RuleClass]) -> list[Rule]:
    return [rule for rule, kind in rules.items() if kind == "advisory"]
