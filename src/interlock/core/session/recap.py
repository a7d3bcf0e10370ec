"""The recap of a run, for an agent that resumes it without its earlier conversation.

It has the goal, the context and the kept notes in full. The other notes share a budget: the most
cited come first, then the newest. The recap names the notes that do not fit, so that the agent can
read them one by one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from interlock.core.canonical import Json
from interlock.core.session.answer import LeftOutNotes

CHARS_MAX = 12_000  # of the notes that are not kept
VALUE_CHARS_MAX = 8_000  # of one value; a larger one is cut, and read with all that was submitted
_WORD = re.compile(r"\w+")
ALL = "all"
"""The step to ask for to read the values and the notes of all steps."""


class PastNotes(msgspec.Struct, frozen=True):
    """The output of one earlier step or checkpoint."""

    step: str
    """The name by which it is read: the id of the step, or of the node of a checkpoint."""
    title: str
    notes: str
    is_kept: bool = False
    artifacts: tuple[str, ...] = ()
    """The artifacts that are shown with it, as JSON."""
    artifact_chars: int = 0
    """The size of artifacts that are too large to show here."""

    @property
    def text(self) -> str:
        parts = (f"### {self.title}", self.notes.strip(), *self.artifacts)
        return "\n\n".join(filter(None, parts))


class RunMemory(msgspec.Struct, frozen=True):
    """The input of the recap of a run at one of its nodes."""

    goal: str
    """Empty for a run that follows no workflow."""
    values: Mapping[str, Json]
    guidance: str
    """The rules of the workflow, in words."""
    instructions: str
    """How to do the pending step, if its prompt refers to an earlier prompt."""
    unaccepted: str
    """The notes that were submitted for the pending step and not accepted."""
    newest_first: Sequence[PastNotes]
    older_count: int
    """The number of steps before those in `newest_first`."""
    later: str
    """What was done after this node, if the run has moved on."""


def compose(memory: RunMemory, *, chars_max: int = CHARS_MAX) -> tuple[str, list[LeftOutNotes]]:
    """Return the recap, and the notes that it leaves out, the oldest first."""
    kept = [past for past in memory.newest_first if past.is_kept]
    others = [past for past in memory.newest_first if not past.is_kept]
    chosen = _choose(others, memory.newest_first, chars_max)
    # An entry of `values` that was cut is read with everything else.
    values, cut = _values_text(memory.values)
    older = LeftOutNotes(ALL, f"the {memory.older_count} oldest steps", 0)
    left_out = [
        *cut,
        *((older,) if memory.older_count else ()),
        *_left_out([past for past in others if past not in chosen]),
        *(
            LeftOutNotes(past.step, f"the artifacts of {past.title}", past.artifact_chars)
            for past in (*kept, *chosen)
            if past.artifact_chars
        ),
    ]
    sections = (
        "## Run so far",
        memory.goal and f"Goal: {memory.goal}",
        memory.guidance,
        memory.instructions,
        values,
        memory.unaccepted
        and f"## Your last notes for this step (not accepted)\n\n{memory.unaccepted.strip()}",
        *_notes_section("Notes kept for every later step", reversed(kept)),
        *_notes_section("Earlier notes, newest first", chosen),
        memory.later,
    )
    return "\n\n".join(filter(None, sections)), left_out


def _choose(
    newest_first: list[PastNotes], all_notes: Sequence[PastNotes], chars_max: int
) -> list[PastNotes]:
    """Return the notes that fit, the newest first. The newest ones always fit."""
    sizes = [len(past.text) for past in newest_first]
    if sum(sizes) <= chars_max:
        return newest_first
    citations = _citations(all_notes)
    by_need = sorted(range(1, len(sizes)), key=lambda at: -citations[newest_first[at].step])
    chosen = {0}
    room = chars_max - sizes[0]
    for at in by_need:  # those that are cited as often: the newest first
        if sizes[at] <= room:
            chosen.add(at)
            room -= sizes[at]
    return [past for at, past in enumerate(newest_first) if at in chosen]


def _citations(all_notes: Sequence[PastNotes]) -> dict[str, int]:
    """Return how many other steps cite each step by its id or title."""
    texts = [(past.step, _spaced_words(past.notes)) for past in all_notes]
    vocabulary = {word for _, text in texts for word in text.split()}
    citations: dict[str, int] = {}
    for past in all_notes:
        names = {_spaced_words(name) for name in (past.step, past.title)}
        # Most notes speak of few steps, and looking through all of them takes long.
        known = [name for name in names if vocabulary.issuperset(name.split())]
        citing = {step for name in known for step, text in texts if name in text}
        citations[past.step] = len(citing - {past.step})
    return citations


def _spaced_words(text: str) -> str:
    """Return the words of a text, each with a space before and after it."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _left_out(newest_first: list[PastNotes]) -> Iterator[LeftOutNotes]:
    sizes: dict[str, int] = {}
    titles: dict[str, str] = {}
    for past in reversed(newest_first):
        sizes[past.step] = sizes.get(past.step, 0) + len(past.notes)
        titles[past.step] = past.title
    return (LeftOutNotes(step, titles[step], size) for step, size in sizes.items())


def _values_text(values: Mapping[str, Json]) -> tuple[str, list[LeftOutNotes]]:
    lines: list[str] = []
    cut: list[LeftOutNotes] = []
    for name, value in values.items():
        text = msgspec.json.encode(value).decode()
        if len(text) > VALUE_CHARS_MAX:
            cut.append(LeftOutNotes(ALL, f"the value of {name}", len(text)))
            text = f"{text[:VALUE_CHARS_MAX]}…"
        lines.append(f"- {name}: {text}")
    return "\n".join(("Values of the context:", *lines)) if lines else "", cut


def _notes_section(title: str, notes: Iterator[PastNotes] | list[PastNotes]) -> Iterator[str]:
    texts = [past.text for past in notes]
    if texts:
        yield "\n\n".join((f"## {title}", *texts))
