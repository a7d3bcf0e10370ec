"""Decisions in words: what a trace says, for people."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from interlock.core.workflow.compiled import CompiledWorkflow
from interlock.core.workflow.interpret import IN_ORDER, Entry

Titles = Mapping[str, str]
"""Of steps and loops, by id. What is not in it is called by its id."""

_NAMED_MAX = 5  # of several that were skipped for one reason


def titles_of(workflow: CompiledWorkflow) -> dict[str, str]:
    found: dict[str, str] = {}
    for step, loops in workflow.steps_with_loops():
        found |= {loop.id: loop.title for loop in loops}
        found[step.id] = step.title
    return found


def decisions_in_words(entries: Iterable[Entry], titles: Titles | None = None) -> tuple[str, ...]:
    """A sentence for each decision. Steps that were skipped in a row for one reason share one."""
    known = titles or {}
    said = groupby(entries, key=lambda entry: (entry.what, entry.why))
    return tuple(line for _, group in said for line in _sentences(list(group), known))


def _sentences(entries: list[Entry], titles: Titles) -> Iterator[str]:
    first = entries[0]
    if first.what == "skipped" and len(entries) > 1:
        names = [titles.get(entry.about, entry.about) for entry in entries]
        more = [f"{len(names) - _NAMED_MAX} more"] if len(names) > _NAMED_MAX else []
        shown = ", ".join(names[:_NAMED_MAX] + more)
        yield f"skipped {len(entries)} steps ({shown}): {first.why}"
        return
    for entry in entries:
        if line := _sentence(entry, titles.get(entry.about, entry.about)):
            yield line


def _sentence(entry: Entry, name: str) -> str:
    why = entry.why
    match entry.what:
        case "skipped":
            return f"skipped {name}: {why}"
        case "chosen":
            # That the next step came next is no news.
            return "" if why == IN_ORDER else f"went to {name}: {why}"
        case "loop_entered":
            return f"loop {name} begun: {why}"
        case "loop_skipped":
            return f"loop {name} skipped: {why}"
        case "pass_begun":
            return f"loop {name}, {why}"
        case "loop_ended":
            return f"loop {name} ended {why}"
        case "loop_bounded":
            return f"loop {name} ended at its bound: {why}"
        case "complete":
            return f"the end: {why}"
        case "left_out":
            return f"and {why}"
        case "branched":
            return f"a new branch: the same step was handed in before and led to {why}"
        case "blocked":
            return f"not accepted: {name.replace('_', ' ')} ({why})"
        case "passed":
            return f"went on with {name}, {why}"
        case "approval":
            return f"approval {name} is needed: {why}"
        case "fragment_given":
            return f"the prompt has {name}: {why}"
        case "fragment_left_out":
            return f"the prompt leaves out {name}: {why}"
