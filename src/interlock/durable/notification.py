"""The job `notify`: run the user's command for an announcement, with its facts as JSON.

The command is the user's own (`[notify]` in the config of the data home; a project cannot name
one), is run without a shell, and gets the facts on its standard input.
"""

import os
import subprocess
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.jobs.notify_settings import NotifySettings, notify_settings
from interlock.core.session.announcements import Topic
from interlock.durable.job import Job, JobContext, JobStep, StepResult

COMMAND_SECONDS = 15
OUTPUT_CHARS_MAX = 500


class NotifyFailed(OSError):
    """The command of the user did not do it. It is tried again."""


def is_notifying(home: Path, topic: Topic) -> bool:
    settings = _settings(home)
    return bool(settings.command) and topic in settings.events


def _run_command(app: App, context: JobContext) -> StepResult:
    command = _settings(app.home).command
    if not command:
        return StepResult("no command is set any more")
    facts = {"id": context.job, **msgspec.to_builtins(context.announcement)}
    try:
        finished = subprocess.run(
            command,
            input=msgspec.json.encode(facts),
            capture_output=True,
            timeout=COMMAND_SECONDS,
            check=False,
            env=dict(os.environ),
            cwd=app.home,
        )
    except subprocess.TimeoutExpired as error:
        raise NotifyFailed(f"`{command[0]}` took more than {COMMAND_SECONDS} s") from error
    if finished.returncode:
        message = finished.stderr.decode(errors="replace")[-OUTPUT_CHARS_MAX:]
        raise NotifyFailed(f"`{command[0]}` ended with {finished.returncode}: {message}")
    return StepResult(f"`{command[0]}` was run")


def _settings(home: Path) -> NotifySettings:
    try:
        return notify_settings(home)
    except SettingsBroken:
        return NotifySettings()  # whoever looks at the settings is told


NOTIFY = Job("notify", (JobStep("run_command", _run_command),))
