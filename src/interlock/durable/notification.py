"""The jobs that tell the user of an announcement: `notify` runs their command, `webhook` posts to
their address, each with the facts as JSON. One that fails does not keep the other from its work.

Both are the user's own (`[notify]` in the config of the data home; a project cannot name any). The
command is run without a shell, and gets the facts on its standard input. The address of a webhook
is often a secret by itself, so nothing that is recorded or shown names it.
"""

import subprocess
import tempfile
from pathlib import Path

import msgspec

from interlock.app.context import App
from interlock.app.jobs.notify_settings import notify_settings
from interlock.app.runs import approvals
from interlock.core.ids import SessionId
from interlock.core.session.announcements import Topic
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.workspace.outside.deadline_http import DeadlineHttp, ServerDown

COMMAND_SECONDS = WEBHOOK_SECONDS = 15
OUTPUT_BYTES_MAX = 500
_ANSWERED = StepResult("it was answered meanwhile")


class NotifyFailed(OSError):
    """The command or the webhook of the user did not do it. It is tried again."""


class WebhookFacts(msgspec.Struct, frozen=True):
    """The body of a webhook."""

    id: str
    """Of the job: one that comes twice is the same."""
    topic: Topic
    session: SessionId
    subject: str
    text: str
    goal: str
    """Of the session, or of its newest run."""


def notifying_jobs(home: Path, topic: Topic) -> list[str]:
    """The names of the jobs by which the user wants to be told of a topic.

    Raises:
        SettingsBroken: the user's config cannot be used.
    """
    settings = notify_settings(home)
    if not settings.wants(topic):
        return []
    ways = ((NOTIFY, bool(settings.command)), (WEBHOOK, bool(settings.webhook)))
    return [job.name for job, is_wanted in ways if is_wanted]


def _run_command(app: App, context: JobContext) -> StepResult:
    command = notify_settings(app.home).command
    if not command:
        return StepResult("no command is set any more")
    if not _still_waits(app, context):
        return _ANSWERED
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


def _post_webhook(app: App, context: JobContext) -> StepResult:
    about, address = context.announcement, notify_settings(app.home).webhook
    if not address:
        return StepResult("no webhook is set any more")
    if not _still_waits(app, context):
        return _ANSWERED
    goal = _goal_of(app, about.session_id)
    facts = WebhookFacts(
        context.job, about.topic, about.session_id, about.subject, about.text, goal
    )
    connection = DeadlineHttp(address, "", WEBHOOK_SECONDS)
    try:
        connection.deliver(msgspec.json.encode(facts))
    except ServerDown as failure:
        raise NotifyFailed(f"The webhook {failure}") from failure
    finally:
        connection.close()
    return StepResult("the webhook has accepted it")


def _goal_of(app: App, session: SessionId) -> str:
    stream, runs = app.log.stream(session), app.log.runs(session, latest=1)
    unattended = stream.head.unattended if stream and stream.head else None
    return unattended.order.goal if unattended else runs[-1].goal if runs else ""


def _still_waits(app: App, context: JobContext) -> bool:
    """Whether an approval waits: it may have been asked for long ago, when nobody ran jobs."""
    about = context.announcement
    if about.topic != "approval/requested":
        return True
    found = approvals.find_approval(app, about.session_id, about.subject)
    return isinstance(found, approvals.PendingApproval)


NOTIFY = Job("notify", (JobStep("run_command", _run_command),))
WEBHOOK = Job("webhook", (JobStep("post", _post_webhook),))
