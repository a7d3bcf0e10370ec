"""The words of each surface for the next step: agents send arguments, people type options."""

from collections.abc import Mapping
from typing import NamedTuple

from interlock.core.explanation import Explanation
from interlock.core.notes.operations import ArgumentName
from interlock.core.refusal import Refusal


class Wording(NamedTuple):
    place: str
    """A sentence that tells how to choose the project."""
    separate: str
    overwrite: str
    """A template with one placeholder, for the version."""
    again: str
    """A template with one placeholder, for the version."""
    version: str
    frontmatter: str
    arguments: Mapping[ArgumentName, str]
    operations: Mapping[str, str]

    def operation(self, name: str) -> str:
        return self.operations.get(name, name)


TOOL_WORDING = Wording(
    place="Go to a directory of the project (or name it as workspacePath).",
    separate="send `separate: true`",
    overwrite="send `overwrite: true` and version {}",
    again="send it again with version {}",
    version="send the version that comes with it",
    frontmatter="metadata",
    arguments={
        "content": "content",
        "section": "section",
        "find": "findText",
        "expected": "expectedReplacements",
        "subsections": "replaceSubsections",
    },
    operations={},
)
COMMAND_WORDING = Wording(
    place="Go to a directory of the project.",
    separate="add --separate",
    overwrite="add --overwrite {}",
    again="do it again with --version {}",
    version="give the version that comes with it as --version",
    frontmatter="--set or --unset",
    arguments={
        "content": "--content",
        "section": "--section",
        "find": "--find",
        "expected": "--expected",
        "subsections": "--subsections",
    },
    operations={
        "find_replace": "find-replace",
        "replace_section": "replace-section",
        "insert_before_section": "insert-before",
        "insert_after_section": "insert-after",
    },
)
WRITE_COMMAND_WORDING = COMMAND_WORDING._replace(again="do it again with --overwrite {}")


class WordedRefusal(Refusal, frozen=True):
    """A refusal that is explained in the words of the surface on which it is shown."""

    def explain(self, wording: Wording = TOOL_WORDING) -> Explanation:
        raise NotImplementedError
