"""The formats in which pages show values."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from interlock.core.canonical import Json
from interlock.core.unattended.order import dollars
from interlock.core.views.counting import progress_text
from interlock.core.views.status import LOOKS, Look, self_attested_text
from interlock.core.visible_text import make_visible

CHANGE_MESSAGES = {
    "archived": "The session is archived. It is still here: filter for archived sessions.",
    "unarchived": "The session is back in the list.",
    "several_archived": "The selected sessions are archived. They are still here: filter for them.",
    "several_unarchived": "The selected sessions are back in the list.",
    "deleted": "The session and everything that only it held are deleted.",
    "imported": "The bundle was imported as a new session.",
    "granted": "Granted. The run goes on with the agent's next call.",
    "denied": "Denied. The agent is told why with its next call.",
    "resolved": "The gap is closed.",
    "preferences": "The preferences hold from the next step on.",
    "mode": "The mode is changed.",
    "unblocked": "The run may go on.",
    "checkpoint": "The checkpoint is kept.",
    "started": "The run is recorded. It waits for an agent to take it up.",
    "source_added": "The source is added. Its workflows are in the catalogue.",
    "source_fetched": "Fetched. The list shows the commit that is in use now.",
    "job_cancelled": "The job is cancelled. It can be retried.",
    "job_retried": "The job goes on at the step that is not done.",
    "message_sent": "Sent. Each agent is told with its next call.",
    "acknowledged": "Acknowledged. The sender sees it.",
    "paths_released": "Released. The agent is told with its next call.",
    "work_pause": "It pauses as soon as the turn that goes on is over.",
    "work_pause_now": "It is paused, whatever it was doing.",
    "work_resume": "It goes on as soon as it is its turn.",
    "work_cancel": "It is cancelled. What it had changed is still in its worktree.",
    "steered": "Written down. The model gets it before its next turn.",
    "limits_set": "The limits hold from the next turn on.",
    "delivery_wanted": "It is being delivered. The page of the session says what came of it.",
    "all_cancelled": "All unattended work is cancelled. What it had changed is still there.",
    "work_ordered": "It is queued. A driver begins when it is its turn.",
    "source_removed": "Nothing is read from that source any more.",
}
"""The message after a change, by its key."""


class StepCounts(Protocol):
    """A run, or a row of one."""

    @property
    def steps_done(self) -> int: ...
    @property
    def steps_skipped(self) -> int: ...
    @property
    def step_count(self) -> int: ...


TIME_MAX_MS = 253_402_300_799_000  # the end of the year 9999
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def show_on_page(text: str) -> str:
    """The text without terminal colours, and with escapes for what a reader would not see."""
    return make_visible(_ANSI.sub("", text))


def moment(at_ms: int) -> str:
    """A time for people, to the second."""
    return _time(at_ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso_time(at_ms: int) -> str:
    return _time(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(at_ms: int) -> datetime:
    """The time, moved into what a calendar has: an imported bundle may name any number."""
    return datetime.fromtimestamp(min(max(0, at_ms), TIME_MAX_MS) / 1000, UTC)


def short_id(name: str) -> str:
    """The start of an id, enough to tell it from others."""
    kind, _, rest = name.partition("_")
    return f"{kind}_{rest[:8]}" if rest else name[:12]


def format_size(count: int) -> str:
    amount = float(count)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def format_count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def in_words(name: str) -> str:
    """The name of a job, a step or a topic, for a title: `run_command` is Run command."""
    words = re.sub(r"[_/.-]+", " ", name).strip()
    return words[:1].upper() + words[1:]


def format_duration(time_ms: int) -> str:
    if time_ms < 1000:  # noqa: PLR2004
        return f"{time_ms} ms"
    # Cut, not rounded: there is no second 60 in a minute.
    seconds, minutes, hours = time_ms // 1000, time_ms // 60_000, time_ms // 3_600_000
    if not minutes:
        return f"{time_ms // 100 / 10:.1f} s"
    return f"{minutes} min {seconds % 60} s" if not hours else f"{hours} h {minutes % 60} min"


def format_seconds(time_ms: int) -> str:
    """A duration of which only the seconds are known."""
    if time_ms < 1000:  # noqa: PLR2004
        return "under 1 s"
    return f"{time_ms // 1000} s" if time_ms < 60_000 else format_duration(time_ms)  # noqa: PLR2004


def path_tail(path: str) -> str:
    """The last part of a path, for where the title attribute has the whole."""
    return path.rstrip("/").rpartition("/")[2] or path


def pretty_json(value: object) -> str:
    """A struct as JSON that people can read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def format_json(text: str) -> str:
    """A text as JSON that people can read, if it is JSON."""
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:
        return text


def show_value(value: Json) -> str:
    """A value of the context: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def format_progress(run: StepCounts) -> str:
    return progress_text(run.steps_done, run.steps_skipped, run.step_count)


_LOOKS: Mapping[str, Look] = {
    **LOOKS,
    "done": Look("good", "check"),
    "pending": Look("busy", "dot"),
}


def tone_of(result: str) -> str:
    """The colour of a step; one at which a run stopped has that of the status."""
    return _LOOKS[result].tone


def shape_of(result: str) -> str:
    return _LOOKS[result].icon


FILTERS: dict[str, Callable[..., Any]] = {
    "moment": moment,
    "iso": iso_time,
    "short": short_id,
    "size": format_size,
    "count": format_count,
    "in_words": in_words,
    "duration": format_duration,
    "whole_seconds": format_seconds,
    "tail": path_tail,
    "dollars": dollars,
    "pretty": pretty_json,
    "value": show_value,
    "json_text": format_json,
    "progress": format_progress,
    "tone": tone_of,
    "shape": shape_of,
    "self_attested": self_attested_text,
}
