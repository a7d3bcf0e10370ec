"""The prompt of a step, as the agent is given it. What is written here is stored with the node."""

from interlock.core.workflow.compiled import CompiledWorkflow

_NOTES_AT_FIRST = """\
When you have done this step, write notes for it: what you did, found and decided, and what is \
still open. The notes are kept, and are what you (or another agent) will be shown when the \
conversation is lost or shortened, so write what you would want to read then. Each step has its \
own notes; do not repeat earlier ones."""
_NOTES_LATER = "Finish with notes for this step: what you did, found and decided, and what is open."


def render(workflow: CompiledWorkflow, cursor: int, *, goal: str) -> str:
    """The words for the step at `cursor`."""
    if cursor == 0:
        return f"Goal: {goal}\n\n{workflow.steps[0].prompt}\n\n{_NOTES_AT_FIRST}"
    return f"{workflow.steps[cursor].prompt}\n\n{_NOTES_LATER}"
