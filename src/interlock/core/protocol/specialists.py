"""The specialist agents that are known by name. Others may be delegated to as well."""

SPECIALISTS = {
    "orchestrator": "hands work to the others and puts their results together",
    "analyst": "looks into causes and options, and says what is known",
    "architect": "designs, and records decisions about the structure",
    "planner": "cuts work into milestones and tasks",
    "implementer": "writes code and its tests",
    "critic": "looks for what a plan or a change has overlooked",
    "qa": "tests, and says whether it is good enough",
    "security": "looks for ways to misuse it",
    "devops": "builds, releases and operates",
    "retrospective": "draws lessons from what happened",
    "memory": "keeps what must not be forgotten",
    "skillbook": "keeps how things are done here",
    "independent-thinker": "questions assumptions",
    "high-level-advisor": "weighs priorities and says what to do first",
    "explainer": "writes for readers",
    "task-generator": "writes tasks that can be taken up one by one",
    "pr-comment-responder": "answers the comments of a review",
}
NAME_CHARS_MAX = 64
REMEMBERED = ("analyst", "architect", "memory", "skillbook")
"""The ones whose context is kept in a note of their own, and shown to them again."""


def normalise_agent(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())


def is_agent_name(name: str) -> bool:
    """Whether a normalised name can be that of an agent."""
    return bool(name) and len(name) <= NAME_CHARS_MAX and name.isprintable()


def unknown_agent_warning(agent: str) -> str:
    """Return a warning about a name that is none of these; empty if it is one."""
    if agent in SPECIALISTS:
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 (5 ms, and seldom needed)

    close = get_close_matches(agent, SPECIALISTS, n=1)
    hint = f" Did you mean `{close[0]}`?" if close else " `interlock agents list` shows them."
    return f"`{agent}` is none of the known agents; it was recorded all the same.{hint}"
