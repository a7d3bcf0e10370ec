"""The policy in force in a project now, and remarks about it for the project's users."""

from pathlib import Path

import msgspec

from interlock.app.gate import integrity
from interlock.core.gate import trust
from interlock.core.gate.notice import NoticeLimit
from interlock.core.gate.rules import Bypass
from interlock.core.gate.state import Policy
from interlock.core.gate.trust import ProjectPolicy, UserPolicy
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.machine import grants, spool
from interlock.workspace.projects import project, settings

NOTICE_AGE_MAX_MS = 86_400_000  # notices are shown for a day
NOTICES_MAX = 3


class EffectivePolicy(msgspec.Struct, frozen=True):
    policy: Policy
    notice_limit: NoticeLimit = NoticeLimit()
    ignored_settings: tuple[str, ...] = ()
    """The settings of the project that do not count, because nobody has trusted them."""
    policy_if_trusted: Policy | None = None
    """The policy if the user trusted them; None if none is ignored."""
    faults: tuple[str, ...] = ()
    """Faults in the user's own files. Nothing that they open counts then."""
    stamp: str = ""
    """The stamp of the project's config, as in `ProjectPolicy`."""


def load_effective_policy(home: Path, root: Path, *, at_ms: int) -> EffectivePolicy:
    """Return the policy in force in the project at `root`.

    Raises:
        SettingsBroken: the project's config cannot be used.
    """
    project_policy = _policy_of_project(home, root)
    faults: list[str] = []
    try:
        user_policy = settings.user_policy_in(home / "config.toml")
        bypasses = _active_bypasses(home, root, at_ms)
    except SettingsBroken as broken:
        user_policy, bypasses = UserPolicy(), ()
        faults.append(str(broken))
    is_trusted = True
    if trust.loosening_settings(project_policy):
        try:
            is_trusted = is_policy_trusted(home, root, project_policy)
        except SettingsBroken as broken:
            is_trusted = False
            faults.append(str(broken))
    merged = trust.effective_policy(project_policy, user_policy, bypasses, is_trusted=is_trusted)
    policy_if_trusted = None
    if merged.ignored_settings:
        trusted = trust.effective_policy(project_policy, user_policy, bypasses, is_trusted=True)
        policy_if_trusted = trusted.policy
    return EffectivePolicy(
        merged.policy,
        user_policy.notice_limit,
        merged.ignored_settings,
        policy_if_trusted=policy_if_trusted,
        faults=tuple(faults),
        stamp=project_policy.stamp,
    )


def _policy_of_project(home: Path, root: Path) -> ProjectPolicy:
    """The policy in the project's config; where that is gone, in the one that the user trusted."""
    try:
        return project.policy_in(root)
    except SettingsBroken:
        content = integrity.trusted_config(home, root)
        if content is None or (root / project.CONFIG).exists():
            raise
        return project.parse_policy(root / project.CONFIG, content)


def is_policy_trusted(home: Path, root: Path, project_policy: ProjectPolicy) -> bool:
    """Whether the user has trusted this very content in this very directory.

    Raises:
        SettingsBroken: the list of trusted checkouts cannot be read.
    """
    checkouts = grants.load_trusted_checkouts(home)
    content = (str(root), project_policy.digest)
    return any((checkout.root, checkout.digest) == content for checkout in checkouts)


def is_checkout_trusted(home: Path, root: Path) -> bool:
    """Whether the user has trusted the project's config, as it is now, in this very directory."""
    try:
        return is_policy_trusted(home, root, project.policy_in(root))
    except SettingsBroken:
        return False


def policy_remarks(home: Path, root: Path, *, at_ms: int) -> tuple[str, ...]:
    """Sentences for the users of the project, and for its agents to pass on."""
    remarks = [
        f"{integrity.explain(changed)}. Only reading is allowed until then."
        for changed in integrity.differences(home, root)
    ]
    try:
        effective = load_effective_policy(home, root, at_ms=at_ms)
    except SettingsBroken as broken:
        hint = "Only reading is allowed until the user has corrected it."
        return tuple(remarks) or (f"{broken}. {hint}",)
    effect = "Until the user has corrected it, nothing counts that the user has opened."
    remarks += [f"{fault}. {effect}" for fault in effective.faults]
    if effective.ignored_settings:
        count = len(effective.ignored_settings)
        subject = "1 setting" if count == 1 else f"{count} settings"
        names = ", ".join(effective.ignored_settings)
        remarks.append(
            f"{subject} of .interlock/config.toml {'is' if count == 1 else 'are'} not trusted and"
            f" {'does' if count == 1 else 'do'} not count ({names}):"
            " `interlock trust` is for the user to run."
        )
    return (*remarks, *_recent_notices(home, root, at_ms))


def _active_bypasses(home: Path, root: Path, at_ms: int) -> tuple[Bypass, ...]:
    bypasses = grants.load_bypasses(home)
    return tuple(bypass for bypass in bypasses if bypass.is_active_in(str(root), at_ms=at_ms))


def _recent_notices(home: Path, root: Path, at_ms: int) -> list[str]:
    try:
        newest_lines = spool.tail(home)
    except OSError:
        return []
    notices = [
        line
        for line in newest_lines
        if line.notice and line.root == str(root) and line.at_ms > at_ms - NOTICE_AGE_MAX_MS
    ]
    return [
        f"An agent was denied the same again and again ({line.tool}, {line.rule}):"
        f" `interlock gate explain {line.id}`."
        for line in notices[-NOTICES_MAX:]
    ]
