"""Prompts, word for word."""

from interlock.core.workflow.prompt import render
from tests.scenes import pinned


def test_the_first_step_explains_notes_at_length_and_says_the_goal() -> None:
    assert render(pinned().workflow, 0, goal="Ship it") == (
        "Goal: Ship it\n\n"
        "Do the thing number 1.\n\n"
        "When you have done this step, write notes for it: what you did, found and decided, and"
        " what is still open. The notes are kept, and are what you (or another agent) will be shown"
        " when the conversation is lost or shortened, so write what you would want to read then."
        " Each step has its own notes; do not repeat earlier ones."
    )


def test_later_steps_ask_for_notes_in_a_line() -> None:
    assert render(pinned().workflow, 1, goal="Ship it") == (
        "Do the thing number 2.\n\n"
        "Finish with notes for this step: what you did, found and decided, and what is open."
    )
