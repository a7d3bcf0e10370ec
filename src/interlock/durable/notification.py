"""The job `notify`: run the user's command for an announcement, with its facts as JSON.

The command is the user's own (`[notify]` in the config of the data home; a project cannot name
one), is run without a shell, and gets the facts on its standard input.
"""

import subprocess
import tempfile
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.jobs.notify_settings import notify_settings
from interlock.app.runs import approvals
from interlock.core.session.announcements import Topic
from interlock.durable.job import Job, JobContext, JobStep, StepResult

COMMAND_SECONDS = 15
OUTPUT_BYTES_MAX = 500


class NotifyFailed(OSError):
    """The command of the user did not do it. It is tried again."""


def is_notifying(home: Path, topic: Topic) -> bool:
    settings = notify_settings(home)
    return bool(settings.command) and topic in settings.events


def _run_command(app: App, context: JobContext) -> StepResult:
    command = notify_settings(app.home).command
    if not command:
        return StepResult("no command is set any more")
    if context.announcement.topic == "approval/requested" and not _still_waits(app, context):
        return StepResult("it was answered meanwhile")
    facts = {"id": context.job, **msgspec.to_builtins(context.announcement)}
    # To a file: something that the command leaves running would hold a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            finished = subprocess.run(
                command,
                input=msgspec.json.encode(facts),
                stdout=subprocess.DEVNULL,
                stderr=output,
                timeout=COMMAND_SECONDS,
                check=False,
                cwd=app.home,
            )
        except subprocess.TimeoutExpired as error:
            raise NotifyFailed(f"`{command[0]}` took more than {COMMAND_SECONDS} s") from error
        if finished.returncode:
            output.seek(0)
            message = output.read()[-OUTPUT_BYTES_MAX:].decode(errors="replace")
            raise NotifyFailed(f"`{command[0]}` ended with {finished.returncode}: {message}")
    return StepResult(f"`{command[0]}` was run")


def _still_waits(app: App, context: JobContext) -> bool:
    """Whether an approval waits: it may have been asked for long ago, when nobody ran jobs."""
    about = context.announcement
    found = approvals.find_approval(app, about.session_id, about.subject)
    return isinstance(found, approvals.PendingApproval)


NOTIFY = Job("notify", (JobStep("run_command", _run_command),))
