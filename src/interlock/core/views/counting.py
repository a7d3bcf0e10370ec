"""Progress and ages in words."""

from interlock.core.counting import pluralise

__all__ = ["pluralise", "progress_text", "time_ago"]


def progress_text(done: int, skipped: int, count: int) -> str:
    """Return how far a run is: `6 of 14 done, 3 skipped`; skipped steps are said if there are."""
    return f"{done} of {count} done" + (f", {skipped} skipped" if skipped else "")


def time_ago(then_ms: int, now_ms: int) -> str:
    seconds = max(0, now_ms - then_ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"
