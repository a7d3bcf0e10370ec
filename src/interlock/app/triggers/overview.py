"""Triggers for whoever looks: each with its address, its problems, and what it has done last."""

from pathlib import Path

import msgspec

from interlock.app.catalogue.workflow_files import find_workflow
from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.triggers.firing import require_usable
from interlock.app.triggers.schedule import schedule_fault
from interlock.app.triggers.trigger_book import (
    ProjectTrigger,
    TriggerFault,
    TriggerSet,
    read_checkout,
)
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.forge_settings import forge_settings, read_secret
from interlock.app.unattended.model_problems import key_file_problems, model_problems
from interlock.core.explanation import Explanation
from interlock.core.ids import WorkflowId
from interlock.core.refusal import Refusal
from interlock.core.triggers.trigger import ANYBODY, Trigger
from interlock.store.trigger_log import Firing, read_cursor, read_firings
from interlock.workspace.machine import grants
from interlock.workspace.projects.trigger_file import read_trigger_file

FIRINGS_SHOWN = 20


class TriggerOverview(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    place: str
    """Its name among the triggers of all projects."""
    root: str
    trigger: Trigger
    path: str
    """Of its webhook on this server; empty if it has none."""
    due_ms: int
    """The time of its next look or firing; 0 if somebody else decides that."""
    problems: tuple[str, ...]
    """The reasons why it would fail as things are."""
    firings: tuple[Firing, ...]
    """Newest first."""


class TriggerList(msgspec.Struct, frozen=True):
    triggers: tuple[TriggerOverview, ...]
    faults: tuple[TriggerFault, ...]


class NoSuchTrigger(Refusal, frozen=True):
    name: str
    candidates: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        problem = f"There is no trigger `{self.name}`"
        if self.candidates:
            problem = f"Several projects have a trigger `{self.name}`"
        names = ", ".join(f"`{one}`" for one in self.candidates)
        hint = f"Name it with its project: {names}." if names else ""
        return Explanation(
            "unknown_trigger", problem, hint or "`interlock trigger list` lists them."
        )


def load_triggers(home: Path) -> TriggerSet:
    """Read the triggers of all trusted checkouts now.

    Raises:
        SettingsBroken: our own list of trusted checkouts cannot be used.
    """
    sets = [read_checkout(one.root, one.triggers) for one in grants.load_trusted_checkouts(home)]
    return TriggerSet(
        tuple(one for read in sets if not read.faults for one in read.triggers),
        tuple(fault for read in sets for fault in read.faults),
    )


def list_triggers(app: App, known: TriggerSet, *, firings: int = FIRINGS_SHOWN) -> TriggerList:
    overviews = tuple(_overview(app, one, firings) for one in known.triggers)
    return TriggerList(overviews, known.faults)


def list_due_times(home: Path) -> dict[str, int]:
    """When each trigger that nobody calls fires or looks next, by its name.

    Raises:
        SettingsBroken: our own list of trusted checkouts cannot be used.
    """
    waiting = (one for one in load_triggers(home).triggers if not one.trigger.is_webhook)
    return {
        one.place: read_cursor(home, one.place).due_ms for one in waiting if one.trigger.enabled
    }


def find_trigger(
    known: TriggerSet, name: str, here: Path | None = None
) -> ProjectTrigger | NoSuchTrigger:
    """The trigger of a name, which its project may come before: `1a2b3c4d/review`.

    `here`: the project in which we are; its own counts before those of others.
    """
    found = [one for one in known.triggers if name in (one.name, one.place)]
    found = [one for one in found if one.root == str(here)] or found
    if len(found) == 1:
        return found[0]
    return NoSuchTrigger(name, tuple(one.place for one in found))


def find_problems(app: App, one: ProjectTrigger) -> tuple[str, ...]:
    """The reasons why a trigger that is sound by itself would fail as things are."""
    trigger, problems = one.trigger, list[str]()
    entry = find_workflow(app, Path(one.root), WorkflowId(trigger.workflow))
    if isinstance(entry, NoSuchWorkflow):
        problems.append(f"there is no workflow `{trigger.workflow}` in this project")
    if trigger.source == "cron" and (fault := schedule_fault(trigger.schedule, trigger.zone)):
        problems.append(fault)
    settings = driver_settings(app.home)
    runner, model = trigger.runner or settings.runner, trigger.model or settings.model
    problems += model_problems(settings, runner, model)
    problems += [
        f"`{other.path}` of `repositories` is not there"
        for other in trigger.repositories.values()
        if not Path(one.root, Path(other.path).expanduser()).is_dir()
    ]
    try:
        require_usable(app.home, trigger)
        if trigger.source == "gitlab-webhook" and ANYBODY not in trigger.authors:
            # GitLab often sends but a number for an author, who is asked for then.
            read_secret(app.home, trigger.forge, "token_file")
    except SettingsBroken as broken:
        problems.append(str(broken))
    problems += _loose_secrets(app.home, trigger)
    return tuple(problems)


def _loose_secrets(home: Path, trigger: Trigger) -> list[str]:
    """Return which files with secrets of the trigger's forges other users can read."""
    forges, problems = forge_settings(home), list[str]()
    for name in sorted({trigger.forge, trigger.deliver_to} & set(forges)):
        for setting in ("token_file", "webhook_secret_file"):
            path = Path(getattr(forges[name], setting)).expanduser()
            if path.is_file():
                problems += key_file_problems(f"forges.{name}.{setting}", str(path))
    return problems


class CheckedProject(msgspec.Struct, frozen=True, rename="camel"):
    """The triggers of a project as they are in its file, whether they count or not."""

    faults: tuple[str, ...]
    problems: dict[str, tuple[str, ...]]
    """Of each sound trigger, by its name."""

    @property
    def is_sound(self) -> bool:
        return not self.faults and not any(self.problems.values())


def check_project(app: App, root: Path) -> CheckedProject:
    """Check the triggers of a project before they are trusted."""
    try:
        file = read_trigger_file(root)
    except SettingsBroken as broken:
        return CheckedProject((str(broken),), {})
    found = {
        name: find_problems(app, ProjectTrigger(name, str(root), trigger))
        for name, trigger in file.triggers.items()
    }
    return CheckedProject(file.faults, found)


def _overview(app: App, one: ProjectTrigger, firings: int) -> TriggerOverview:
    due_ms = 0
    if not one.trigger.is_webhook and one.trigger.enabled:
        due_ms = read_cursor(app.home, one.place).due_ms
    path = f"/hooks/{one.place}" if one.trigger.is_webhook else ""
    return TriggerOverview(
        one.name,
        one.place,
        one.root,
        one.trigger,
        path,
        due_ms,
        find_problems(app, one),
        tuple(read_firings(app.home, one.place, limit=firings)),
    )
