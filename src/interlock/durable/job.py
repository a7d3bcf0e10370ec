"""A job: work in named steps, each of which is recorded when it is done, and may be done twice.

A process that dies leaves at most one step unrecorded, and that one is done again: so a step looks
for what it did before, or names its effect by a key. What a step returns is kept as JSON and given
to the later ones, which is all that they may rely on.
"""

from collections.abc import Callable, Mapping

import msgspec

from interlock.app.context import App
from interlock.core.canonical import Json
from interlock.core.session.announcements import Announcement


class JobContext(msgspec.Struct, frozen=True):
    job: str
    """The id of the job."""
    announcement: Announcement
    """The reason why it was started."""
    results: Mapping[str, Json]
    """The results of the steps before, by their names."""


class StepResult(msgspec.Struct, frozen=True, rename="camel"):
    value: Json = None
    is_last: bool = False
    """Nothing is left to do: the steps after it are not run."""


class JobStep(msgspec.Struct, frozen=True):
    name: str
    work: Callable[[App, JobContext], StepResult]
    attempts_max: int = 4
    """How often it is tried where the world fails. A mistake of ours is not repeated."""


class Job(msgspec.Struct, frozen=True):
    name: str
    steps: tuple[JobStep, ...]
    give_up: Callable[[App, JobContext, str], None] | None = None
    """Told why the job has failed, or was cancelled; may be told twice."""
