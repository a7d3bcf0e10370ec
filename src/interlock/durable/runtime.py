"""Running jobs with DBOS: start one, once; continue those whose process died.

DBOS is one object in a process, with threads of its own. A job is one DBOS workflow, and each of
its steps a DBOS step: its result is stored before the next one begins. Whoever continues a job
takes it over in the database, and what its former process still records is refused, so a process
that was only stopped does no further step when it wakes up.

`VERSION` says which jobs a program can continue: it changes only with the steps of a job, and not
with each release, because jobs of another version are left alone.
"""

import logging
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from dbos import DBOS, DBOSConfig, SetWorkflowID, StepOptions, error
from sqlalchemy.exc import SQLAlchemyError

from interlock.app.context import App, open_app
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.core.canonical import Json
from interlock.core.session.announcements import Announcement
from interlock.durable.job import Job, JobContext, JobStep, StepResult
from interlock.durable.job_database import (
    POOL_SIZE,
    SERIALIZER,
    JobDatabase,
    report_as_store_failure,
)

VERSION = "1"
WORKFLOW = "job"
ACTIVE = ["PENDING", "ENQUEUED", "DELAYED"]
FIRST_RETRY_SECONDS = 0.5
TRANSIENT = (StoreFailure, OSError, SQLAlchemyError, sqlite3.Error)
"""What may be otherwise the next time."""
_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class StepFailed(Exception):
    """A step is given up: with the last reason, which DBOS would not record."""

    def __init__(self, reason: str, attempts: int) -> None:
        super().__init__(reason)
        self.data = {"attempts": attempts}  # recorded by DBOS under this name


class JobRuntime:
    """The jobs that this process runs. There is one in a process at a time."""

    def __init__(
        self, home: Path, database: JobDatabase, machine: str, jobs: Mapping[str, Job]
    ) -> None:
        self._home, self._jobs, self._engine = home, jobs, database.engine
        self._executions: dict[str, object] = {}
        """The newest execution of each job: one that was cancelled may still be in a step."""
        self._application = f"interlock-{machine}"
        config = DBOSConfig(
            name=self._application,
            executor_id=machine,
            application_version=f"{VERSION}-{machine}",  # DBOS wants it to be ours alone
            serializer=SERIALIZER,
            dbos_system_schema=database.schema,
            use_listen_notify=False,
            sys_db_pool_size=POOL_SIZE,
            log_level="ERROR",
        )
        if database.engine is None:
            config["system_database_url"] = database.url
        else:
            config["system_database_engine"] = database.engine
        DBOS(config=config)
        _join_logs()

        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
        def run_job(name: str, content: dict[str, Any]) -> Json:
            return self._run(name, content)

        self._run_job = run_job
        try:
            with report_as_store_failure():
                DBOS.launch()
        except BaseException:
            self.close()  # otherwise what is half there would be used the next time
            raise

    def start(self, job: Job, job_id: str, announcement: Announcement) -> None:
        """Start a job, unless one with this id was started before."""
        with report_as_store_failure(), SetWorkflowID(job_id):
            DBOS.start_workflow(self._run_job, job.name, msgspec.to_builtins(announcement))

    def active_jobs(self) -> list[str]:
        """The ids of the jobs of this machine that are not over."""
        with report_as_store_failure():
            found = DBOS.list_workflows(
                status=ACTIVE,
                application_name=self._application,
                load_input=False,
                load_output=False,
            )
        return [status.workflow_id for status in found]

    def close(self, *, wait_seconds: int = 0) -> None:
        """End. A step that still runs then is done again by the next executor."""
        logging.getLogger("dbos").setLevel(logging.CRITICAL)  # it will miss what is closed
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=wait_seconds)
        if self._engine is not None:
            self._engine.dispose()  # it is ours, so DBOS leaves its connections open

    def _run(self, name: str, content: dict[str, Any]) -> Json:
        """The steps of a job in their order. DBOS runs this again from its start to continue it."""
        job_id = DBOS.workflow_id
        assert job_id is not None, "a job runs as a workflow"
        execution = self._executions[job_id] = object()
        announcement = msgspec.convert(content, Announcement)
        job, results = self._jobs[name], dict[str, Json]()
        for step in job.steps:
            options = StepOptions(
                name=step.name,
                retries_allowed=step.attempts_max > 1,
                max_attempts=step.attempts_max,
                interval_seconds=FIRST_RETRY_SECONDS,
                should_retry=_is_transient,
            )
            context = JobContext(job_id, announcement, dict(results))
            try:
                stored: Any = DBOS.run_step(options, self._run_step, step, context, execution)
            except StepFailed as failure:
                self._give_up(job, context, str(failure))
                raise
            result = msgspec.convert(stored, StepResult)
            results[step.name] = result.value
            if result.is_last:
                break
        del self._executions[job_id]
        return results

    def _run_step(self, step: JobStep, context: JobContext, execution: object) -> dict[str, Json]:
        attempt = self._current_attempt(context.job, execution)
        try:
            result = self._with_app(lambda app: step.work(app, context))
        except Exception as failure:
            if _is_transient(failure) and attempt < step.attempts_max:
                raise
            if not isinstance(failure, (*TRANSIENT, SettingsBroken)):
                _LOG.exception("Step %s of %s: this is a bug in Interlock", step.name, context.job)
            reason = str(failure) or type(failure).__name__
            raise StepFailed(reason, attempt) from failure
        return {**msgspec.to_builtins(result), "attempts": attempt}

    def _give_up(self, job: Job, context: JobContext, reason: str) -> None:
        give_up = job.give_up
        if give_up:
            self._with_app(lambda app: give_up(app, context, reason))

    def _with_app(self, work: Callable[[App], T]) -> T:
        app = open_app(self._home)
        try:
            return work(app)
        finally:
            app.close()

    def _current_attempt(self, job_id: str, execution: object) -> int:
        """The number of this try. Ends the execution if the job was cancelled since the last one.

        It may have been retried since then, too.
        """
        status = DBOS.step_status
        attempt = 1 + ((status.current_attempt or 0) if status else 0)
        if attempt > 1:
            job = DBOS.get_workflow_status(job_id)
            is_running = job is not None and job.status == "PENDING"
            if not is_running or self._executions[job_id] is not execution:
                raise error.DBOSWorkflowCancelledError(f"Job {job_id} was cancelled")
        return attempt


def _join_logs() -> None:
    """Have DBOS log where we do: by itself it writes what others wrote to the terminal as it is.

    That a step was given up, or a job cancelled, is in the record of the job.
    """
    log = logging.getLogger("dbos")
    log.handlers.clear()
    log.propagate = True
    log.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    ends = (StepFailed, error.DBOSAwaitedWorkflowCancelledError)
    return not (record.exc_info and isinstance(record.exc_info[1], ends))


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, TRANSIENT)
