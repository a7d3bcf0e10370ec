"""The workflow file: its shape, and everything that can be wrong with one."""

import re
from typing import Literal

import msgspec

from interlock.core.canonical import Json
from interlock.core.ids import StepId, WorkflowId
from interlock.core.preferences import Wish
from interlock.core.workflow import criteria

FILE_BYTES_MAX = 1024 * 1024  # a workflow is prose for an agent; a megabyte is somebody's accident
STEPS_MAX = 2_000
_WORKFLOW_ID = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)?")
_STEP_ID = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SEMVER = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_ID_LENGTH_MAX = 64


UserOnlyReason = Literal[
    "needs_user_secret_or_token",
    "needs_user_account_access",
    "needs_user_artifact",
    "needs_user_choice",
    "needs_user_approval",
    "needs_user_environment_action",
]
Capability = Literal["delegation", "web_browsing"]


class UserOnly(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What only the user can give."""

    reason: UserOnlyReason
    question: str


class Step(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    id: StepId
    title: str
    prompt: str
    notes_optional: bool = False
    validation_criteria: Json = None
    user_only: UserOnly | None = None


class Workflow(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    id: WorkflowId
    name: str
    description: str
    version: str
    steps: tuple[Step, ...]
    tags: tuple[str, ...] = ()
    capabilities: dict[Capability, Literal["required", "preferred"]] = {}
    recommended_preferences: Wish | None = None


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a workflow file, and where (JSON pointer)."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or 'the file'}: {self.message}"


class Invalid(msgspec.Struct, frozen=True):
    """The file is not a workflow. Every problem at once, so that one edit can mend them all."""

    problems: tuple[Problem, ...]


_decoder = msgspec.json.Decoder(Workflow)


def parse(content: bytes) -> Workflow | Invalid:
    if len(content) > FILE_BYTES_MAX:
        return Invalid((Problem("", f"the file is larger than {FILE_BYTES_MAX} bytes"),))
    try:
        workflow = _decoder.decode(content)
    except msgspec.ValidationError as error:
        return Invalid((_from_validation(str(error)),))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Invalid((Problem("", f"not JSON: {error}"),))
    problems = (*_wrong_header(workflow), *_wrong_steps(workflow.steps))
    return Invalid(problems) if problems else workflow


def _wrong_header(workflow: Workflow) -> list[Problem]:
    problems: list[Problem] = []
    if len(workflow.id) > _ID_LENGTH_MAX or not _WORKFLOW_ID.fullmatch(workflow.id):
        problems.append(
            Problem(
                "/id", f"`{workflow.id}` is not an id: use `name` or `namespace.name`, lower case"
            )
        )
    if not _SEMVER.fullmatch(workflow.version):
        problems.append(Problem("/version", f"`{workflow.version}` is not a version like 1.0.0"))
    for field in ("name", "description"):
        if not getattr(workflow, field).strip():
            problems.append(Problem(f"/{field}", "is empty"))
    return problems


def _wrong_steps(steps: tuple[Step, ...]) -> list[Problem]:
    if not steps:
        return [Problem("/steps", "a workflow has at least one step")]
    if len(steps) > STEPS_MAX:
        return [Problem("/steps", f"more than {STEPS_MAX} steps")]
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for index, step in enumerate(steps):
        here = f"/steps/{index}"
        if len(step.id) > _ID_LENGTH_MAX or not _STEP_ID.fullmatch(step.id):
            problems.append(
                Problem(f"{here}/id", f"`{step.id}` is not a step id: lower case, no spaces")
            )
        if (first := seen.setdefault(step.id, index)) != index:
            problems.append(
                Problem(f"{here}/id", f"`{step.id}` is already the id of step {first + 1}")
            )
        problems.extend(
            Problem(f"{here}/{field}", "is empty")
            for field in ("title", "prompt")
            if not getattr(step, field).strip()
        )
        problems.extend(_wrong_criteria(step, f"{here}/validationCriteria"))
    return problems


def _wrong_criteria(step: Step, here: str) -> list[Problem]:
    if step.validation_criteria is None:
        return []
    parsed = criteria.parse(step.validation_criteria, here)
    flaws = parsed if isinstance(parsed, tuple) else ()
    return [Problem(flaw.pointer, flaw.message) for flaw in flaws]


def _from_validation(message: str) -> Problem:
    # msgspec says "…what… - at `$.steps[0].id`"; the place is left out when it is the whole file.
    what, _, place = message.partition(" - at `$")
    pointer = re.sub(r"[.\[]", "/", place.rstrip("`")).replace("]", "")
    return Problem(pointer, what)
