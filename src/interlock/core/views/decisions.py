"""Decisions in words: the entries of a trace as sentences for people."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.interpret import IN_ORDER, Entry

Titles = Mapping[str, str]
"""The titles of steps and loops, by id. What is missing is called by its id."""

_NAMED_MAX = 5  # of several that were skipped for one reason


def titles_of(workflow: CompiledWorkflow) -> dict[str, str]:
    titles: dict[str, str] = {}
    for step, loops in workflow.steps_with_loops():
        titles |= {loop.id: loop.title for loop in loops}
        titles[step.id] = step.title
    return titles


def decisions_in_words(entries: Iterable[Entry], titles: Titles | None = None) -> tuple[str, ...]:
    """Return a sentence for each decision. Steps skipped in a row for one reason share one."""
    titles = titles or {}
    groups = groupby(entries, key=lambda entry: (entry.what, entry.why))
    return tuple(line for _, group in groups for line in _sentences(list(group), titles))


def _sentences(entries: list[Entry], titles: Titles) -> Iterator[str]:
    first = entries[0]
    if first.what == "skipped" and len(entries) > 1:
        names = [titles.get(entry.about, entry.about) for entry in entries]
        more = [f"{len(names) - _NAMED_MAX} more"] if len(names) > _NAMED_MAX else []
        listed_names = ", ".join(names[:_NAMED_MAX] + more)
        yield f"skipped {len(entries)} steps ({listed_names}): {first.why}"
        return
    for entry in entries:
        if line := _sentence(entry, titles.get(entry.about, entry.about)):
            yield line


def _sentence(entry: Entry, name: str) -> str:
    reason = entry.why
    match entry.what:
        case "skipped":
            return f"skipped {name}: {reason}"
        case "chosen":
            # It is no news that the next step came next.
            return "" if reason == IN_ORDER else f"went to {name}: {reason}"
        case "loop_entered":
            return f"loop {name} begun: {reason}"
        case "loop_skipped":
            return f"loop {name} skipped: {reason}"
        case "pass_begun":
            return f"loop {name}, {reason}"
        case "loop_ended":
            return f"loop {name} ended {reason}"
        case "loop_bounded":
            return f"loop {name} ended at its bound: {reason}"
        case "complete":
            return f"the end: {reason}"
        case "left_out":
            return f"and {reason}"
        case "branched":
            return f"a new branch: the same step was submitted before and led to {reason}"
        case "blocked":
            return f"not accepted: {name.replace('_', ' ')} ({reason})"
        case "passed":
            return f"went on with {name}, {reason}"
        case "approval":
            return f"approval {name} is needed: {reason}"
        case "fragment_given":
            return f"the prompt has {name}: {reason}"
        case "proven":
            return f"{name} counts as done: `{reason}` was seen to pass"
        case "fragment_left_out":
            return f"the prompt leaves out {name}: {reason}"
