"""The policy in force in a project: its config, as far as it is trusted, and the user's choices.

A project's config comes with a clone, so anybody may have written it. It can always make the gate
stricter. A setting that lets an agent do more than it may in a project without settings counts
only if the user has trusted that very file.
"""

from collections.abc import Iterable

import msgspec

from interlock.core.gate.notice import NoticeLimit
from interlock.core.gate.rules import OPENABLE, Bypass, Rule, RuleClass
from interlock.core.gate.state import Policy, Profile


class ProjectPolicy(msgspec.Struct, frozen=True):
    """The settings for the gate in a project's config."""

    profile: Profile = "standard"
    protected: tuple[str, ...] = ()
    reading_tools: tuple[str, ...] = ()
    agent_may_code: bool = True
    rules: dict[Rule, RuleClass] = {}
    enforces_reservations: bool = False
    digest: str = ""
    """The digest of the file: the user trusts this content and no other."""
    stamp: str = ""
    """The file's identity, size and times when it was read: all that the fast hook compares."""


class UserPolicy(msgspec.Struct, frozen=True):
    """The user's choices for every project on this machine."""

    rules: dict[Rule, RuleClass] = {}
    notice_limit: NoticeLimit = NoticeLimit()
    network_commands: tuple[str, ...] = ()


class MergedPolicy(msgspec.Struct, frozen=True):
    policy: Policy
    ignored_settings: tuple[str, ...] = ()
    """The names of the settings that do not count because nobody has trusted them. Never their
    values: agents read this, and those texts are a stranger's."""


def loosening_settings(project_policy: ProjectPolicy) -> tuple[str, ...]:
    """The settings with which an agent may do more than in a project without settings."""
    names = ["profile"] if project_policy.profile == "light" else []
    names += ["reading_tools"] if project_policy.reading_tools else []
    return (*names, *(f"rules.{rule}" for rule in _advisory_rules(project_policy.rules)))


def effective_policy(
    project_policy: ProjectPolicy,
    user_policy: UserPolicy,
    bypasses: Iterable[Bypass],
    *,
    is_trusted: bool,
) -> MergedPolicy:
    """Return the policy in force. `bypasses` are those that are active in the project now."""
    advisory = {
        *_advisory_rules(user_policy.rules),
        *(_advisory_rules(project_policy.rules) if is_trusted else ()),
    }
    # A rule that the project makes invariant is so, whatever the user chose for all projects.
    invariant = {rule for rule, kind in project_policy.rules.items() if kind == "invariant"}
    policy = Policy(
        profile="standard"
        if project_policy.profile == "light" and not is_trusted
        else project_policy.profile,
        protected=project_policy.protected,
        reading_tools=project_policy.reading_tools if is_trusted else (),
        agent_may_code=project_policy.agent_may_code,
        advisory=tuple(rule for rule in OPENABLE if rule in advisory - invariant),
        bypasses=tuple(bypasses),
        enforces_reservations=project_policy.enforces_reservations,
        network_commands=user_policy.network_commands,
    )
    return MergedPolicy(policy, () if is_trusted else loosening_settings(project_policy))


def _advisory_rules(rules: dict[Rule, RuleClass]) -> list[Rule]:
    return [rule for rule, kind in rules.items() if kind == "advisory"]
