"""An answer is small: beyond the prompt it says only what is new."""

from tests.mcp.agent import Agent

FRAME_CHARS_MAX = 400


def test_an_ordinary_step_has_few_words_around_its_prompt(agent: Agent) -> None:
    first = agent.start()
    result = agent.call(
        "continue_workflow",
        {"continueToken": first["continueToken"], "output": {"notesMarkdown": "done"}},
    )

    text, answer = result["content"][0]["text"], result["structuredContent"]
    assert len(text) - len(answer["pending"]["prompt"]) <= FRAME_CHARS_MAX
    assert "introduction" not in answer
    assert first["introduction"]["session"].startswith("ses_")
    assert first["introduction"]["run"] not in text


def test_after_a_break_everything_is_told_again(agent: Agent) -> None:
    first = agent.start()
    second = agent.hand_in(first["continueToken"])

    back = agent.ok("continue_workflow", continueToken=second["continueToken"])

    assert back["introduction"] == first["introduction"]
    assert back["progress"] == {"done": 1, "skipped": 0, "of": 3}
    assert back["continueToken"] == second["continueToken"]
