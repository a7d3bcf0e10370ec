"""What a driver adds to the work of a model: turns, tools, recovery, and many sessions at once.

The model plays a script and answers at once, so everything that is measured is ours.
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from bench.measure import HEADER, RawAppend, Row
from interlock.app.unattended.status import turns_of
from interlock.core.ids import SessionId
from interlock.core.unattended.journal import ModelAnswered, ModelCalled, ToolStarted
from interlock.driver.tools.catalogue import MalformedCall, check_call
from interlock.driver.tools.tool import Level, Workplace, make_workplace
from tests.driver.stage import Stage, call, git, hand_in
from tests.scenes import linear

TURNS = 40
CALLS = 30
KILLS = 8
TOGETHER = 20


def driving(base: Path) -> list[Row]:
    """A turn against a raw sync, a tool against bare Python, recovery, and twenty sessions."""
    base.mkdir()
    return [*_turns(base / "turns"), *_tools(base / "tools"), *_recovery(base / "recovery")]


def _turns(base: Path) -> list[Row]:
    """The time from an answer of the model to its next question, with a call that does nothing."""
    base.mkdir()
    raw, fsync = RawAppend(base / "raw"), Row("raw fdatasync of 3 KB")
    own = Row("a turn: from the answer to the next question, without a tool", against=fsync)
    once = Row("a session of 5 turns, from its order to its end")
    together = Row(f"{TOGETHER} such sessions at once", against=once)
    words = [call("report_issue", severity="info", summary=f"{n}") for n in range(TURNS)]
    with Stage(base, settings=f"max_sessions = {TOGETHER}") as stage:
        stage.install(linear(1, "one"))
        stage.start_driver()
        script = {"steps": [{"turns": [*words, hand_in("It is done.")]}]}
        session = stage.order("measure", "one", script=script, limits={"turns": 10_000})
        stage.wait_for(session, "done")
        own.samples.extend(_gaps(stage, session))
        for _ in range(TURNS):
            fsync.time(raw)
        short = {"steps": [{"turns": [*words[:4], hand_in("It is done.")]}]}
        for number in range(5):
            once.time(lambda number=number: _run(stage, [f"alone {number}"], short))
        names = [f"together {number}" for number in range(TOGETHER)]
        together.time(lambda: _run(stage, names, short))
    return [fsync, own, once, together]


def _run(stage: Stage, goals: list[str], script: object) -> None:
    sessions = [stage.order(goal, "one", script=script) for goal in goals]
    for session in sessions:
        stage.wait_for(session, "done")


def _gaps(stage: Stage, session: SessionId) -> list[float]:
    rows = turns_of(stage.app, session)
    marks = [row for row in rows if isinstance(row.entry, ModelAnswered | ModelCalled)]
    return [
        float(second.at_ms - first.at_ms)
        for first, second in pairwise(marks)
        if isinstance(first.entry, ModelAnswered) and isinstance(second.entry, ModelCalled)
    ]


def _tools(base: Path) -> list[Row]:
    """One tool call at each level, beside bare Python and a bare shell."""
    repository, home = base / "repository", base / "home"
    repository.mkdir(parents=True)
    home.mkdir()
    git(repository, "init", "-q", "-b", "main")
    (repository / "file").write_text("text\n")
    bare = Row("bare `python -I -S`")
    levels: tuple[Level, ...] = ("off", "read-only", "workspace")
    rows: dict[tuple[Level, str], Row] = {
        (level, tool): Row(f"{tool}, {level}", against=bare)
        for level in levels
        for tool in ("Bash", "Read")
    }
    for _ in range(CALLS):
        bare.time(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True))
        for (level, tool), row in rows.items():
            session = SessionId("ses_00000000000bench")
            place = make_workplace(
                home, session, repository, branch="", level=level, has_network=False
            )
            text = '{"command": "true"}' if tool == "Bash" else '{"file_path": "file"}'
            row.time(
                lambda place=place, tool=tool, text=text: asyncio.run(_call(place, tool, text))
            )
    return [bare, *rows.values()]


async def _call(place: Workplace, tool: str, text: str) -> None:
    checked = check_call(tool, text)
    assert not isinstance(checked, MalformedCall), checked.message
    called, arguments = checked
    outcome = await called.run(place, arguments)
    assert not outcome.is_error, outcome.text


def _recovery(base: Path) -> list[Row]:
    """From kill -9 of the driver, and the start of the next, to its first question."""
    base.mkdir()
    row = Row("kill -9 in a command, to the next question of a new driver")
    sleeps = [call("Bash", command=f"sleep 7; echo {n}") for n in range(KILLS)]
    with Stage(base) as stage:
        stage.install(linear(1, "one"))
        script = {"steps": [{"turns": [*sleeps, hand_in("It is done.")]}]}
        session = stage.order("measure", "one", script=script)
        driver = stage.start_driver()
        for number in range(1, KILLS + 1):
            stage.wait_until(
                lambda number=number: _started(stage, session) == number, "a command", session
            )
            begun = time.perf_counter()
            driver.end(signal.SIGKILL)
            driver = stage.start_driver()
            stage.wait_until(
                lambda number=number: len(stage.model_calls(session)) > number, "asked", session
            )
            row.samples.append((time.perf_counter() - begun) * 1_000)
    return [row]


def _started(stage: Stage, session: SessionId) -> int:
    return sum(isinstance(entry, ToolStarted) for entry in stage.entries(session))


def main() -> None:
    """Print the table of this module alone."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as directory:
        rows = driving(Path(directory) / "driving")
    print(HEADER)
    for row in rows:
        print(row.line())


if __name__ == "__main__":
    main()
