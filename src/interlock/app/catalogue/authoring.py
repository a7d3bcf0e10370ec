"""Begin a workflow: write a small file to edit, and the schema that editors use for completion."""

import re
import unicodedata
from pathlib import Path

import msgspec

from interlock.core.ids import WorkflowId
from interlock.core.workflow.compiler import compile_content
from interlock.core.workflow.file_schema import published_schema
from interlock.core.workflow.problems import InvalidWorkflow
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY

SCHEMA_NAME = "workflow.schema.json"


class AuthoringRefusal(msgspec.Struct, frozen=True):
    reason: str
    hint: str


def id_from_title(title: str) -> WorkflowId:
    """Return the id that a title gives; an id gives itself."""
    words = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9_.]+", "-", words).strip("-")
    return WorkflowId(name or title)


def write_starter_workflow(
    root: Path, workflow: WorkflowId, name: str | None
) -> Path | AuthoringRefusal:
    """Write a workflow to `root`/workflows, and the schema to `root`.

    Raises:
        OSError: the directory cannot be written.
    """
    default_name = (workflow.partition(".")[2] or workflow).replace("-", " ").capitalize()
    content = _starter_content(workflow, (name or "").strip() or default_name)
    outcome = compile_content(content)
    if isinstance(outcome, InvalidWorkflow):
        return AuthoringRefusal(
            str(outcome.problems[0]),
            "An id has lower-case letters, digits, `-` and `_`, and one `.` at most:"
            " `name` or `namespace.name`.",
        )
    if (BUNDLED_DIRECTORY / f"{workflow}.json").exists() or workflow.startswith(
        ("interlock.", "wr.")
    ):
        return AuthoringRefusal(
            f"`{workflow}` is the id of a workflow that comes from elsewhere",
            "Choose another name, like `my.name`.",
        )
    path = root / "workflows" / f"{workflow}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = root / SCHEMA_NAME
    if schema.is_symlink():  # in a clone it may point anywhere
        schema.unlink()
    schema.write_bytes(published_schema())
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return AuthoringRefusal(f"`{path}` is there already", "Edit it, or choose another name.")
    return path


def _starter_content(workflow: WorkflowId, name: str) -> bytes:
    document = {
        "$schema": f"../{SCHEMA_NAME}",
        "id": workflow,
        "name": name,
        "description": "What it is for, in one sentence.",
        "version": "0.1.0",
        "steps": [
            {
                "id": "understand",
                "title": "Understand the task",
                "prompt": "Read what matters for this goal: {{goal}}. Say what is asked, what is"
                " not, and how you will know that it is done.",
            },
            {
                "id": "work",
                "type": "loop",
                "title": "Work in passes",
                "loop": {"type": "while", "maxIterations": 5},
                "body": [
                    {
                        "id": "do",
                        "title": "Do the next part",
                        "prompt": "Do the most important part that is left, and check it.",
                    }
                ],
            },
            {
                "id": "finish",
                "title": "Finish",
                "prompt": "Check the whole against what you wrote at the start.",
                "requireConfirmation": True,
            },
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
