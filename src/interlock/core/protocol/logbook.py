"""The logbook of a session: a Markdown file in the project, for people and agents to go on with."""

from interlock.core.ids import SessionId
from interlock.core.session.state import timestamp

HEADINGS = "\n## What was done\n\n## What is left open\n"
"""The end of a logbook in which nobody has written."""
MAIN_BRANCHES = ("main", "master")


def initial_text(session: SessionId, number: int, *, branch: str, profile: str, at_ms: int) -> str:
    """Return its text when the session begins. `number` counts the sessions of a day."""
    is_main = branch in MAIN_BRANCHES
    branch = branch.replace("|", "\\|")  # which git allows in a name, and a table does not
    warning = "work on a branch of its own" if is_main else ""
    rows = [
        ("MUST", "The session is recorded", "done", session),
        ("MUST", "The branch is known", "done", branch),
        ("SHOULD", "The branch is not the main one", "open" if is_main else "done", warning),
        ("MUST", "What is left open is listed below", "open", ""),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"""\
# {day_of(at_ms)}, session {number:02}

- Session: `{session}` (`interlock session show {session}`)
- Profile: {profile}
- Begun: {timestamp(at_ms)}

| Req | Step | Status | Evidence |
|---|---|---|---|
{table}
{HEADINGS}"""


def day_of(at_ms: int) -> str:
    return timestamp(at_ms)[:10]
