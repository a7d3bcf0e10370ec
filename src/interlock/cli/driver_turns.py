"""Print the journal of unattended work: what the model said and did, each entry within bounds."""

import msgspec

from interlock.cli.terminal import QUOTE_MARK, print_lines, print_text
from interlock.core.unattended.conversation import SpokenPart, ToolRequest
from interlock.core.unattended.journal import (
    AdvanceAnswered,
    AdvanceIntended,
    ConversationCompacted,
    JournalEntry,
    JournalNote,
    MessageAdded,
    ModelAnswered,
    ModelFailed,
    ProofEnded,
    StepBegun,
    ToolEnded,
)
from interlock.core.unattended.order import dollars
from interlock.core.views.counting import pluralise
from interlock.core.views.turns import COMPACTED, arguments_text, shorten

_HEAD_CHARS, _TAIL_CHARS = 1_500, 500


def without_token(placed: JournalEntry) -> JournalEntry:
    """Return an entry without the token of its step, which only the driver may use."""
    entry = placed.entry
    if isinstance(entry, StepBegun | AdvanceIntended | AdvanceAnswered):
        entry = msgspec.structs.replace(entry, token="")
    elif isinstance(entry, JournalNote):
        entry = msgspec.structs.replace(entry, call="")  # a question is named by its token
    return msgspec.structs.replace(placed, entry=entry)


def print_entry(placed: JournalEntry) -> None:
    """Print one entry; nothing for those that only say that something has begun."""
    match placed.entry:
        case StepBegun() as begun:
            print_lines("", f"Step {begun.number}: {begun.title} ({begun.model}, {begun.level})")
        case ModelAnswered() as answered:
            _print_answer(answered)
        case ModelFailed() as failed:
            again = f"; asked again in {failed.wait_ms / 1000:.0f} s" if failed.wait_ms else ""
            print_lines(f"The model did not answer ({failed.kind}){again}")
            _print_quoted(failed.text)
        case ToolEnded() as ended:
            code = "" if ended.exit_code is None else f", exit code {ended.exit_code}"
            result = "failed" if ended.result.is_error else "done"
            print_lines(f"  {ended.result.name}: {result}{code}, {ended.ms} ms")
            _print_quoted(ended.result.text)
        case MessageAdded() as added:
            print_lines("Told by you:" if added.source == "steer" else "Told by the driver:")
            _print_quoted(added.text)
        case ProofEnded(proof):
            print_lines(f"Note: `{proof.command}` {proof.end}")
            _print_quoted(proof.output)
        case ConversationCompacted():
            print_lines(f"Note: compacted. {COMPACTED}")
        case AdvanceAnswered() as answered:
            print_lines(f"  The step was submitted: {answered.outcome}")
            _print_quoted(answered.text)
        case JournalNote() as noted:
            print_lines(f"Note: {noted.kind}")
            _print_quoted(noted.text)
        case _:
            return


def _print_answer(answered: ModelAnswered) -> None:
    usage = answered.usage
    cost = "cost unknown" if usage.cost_micros is None else dollars(usage.cost_micros)
    tokens = f"{usage.input:,} tokens in, {usage.output:,} out"
    print_lines(f"The model, {answered.ms / 1000:.1f} s, {tokens}, {cost}:")
    for part in answered.message.parts:
        if isinstance(part, ToolRequest):
            print_lines(f"  calls {part.name}")
            _print_quoted(arguments_text(part.arguments))
        elif isinstance(part, SpokenPart):
            _print_quoted(part.text)


def _print_quoted(text: str) -> None:
    excerpt = shorten(text.strip(), head=_HEAD_CHARS, tail=_TAIL_CHARS)
    if excerpt.head:
        print_text(excerpt.head, prefix=QUOTE_MARK)
    if excerpt.left_out:
        print_lines(f"  ({pluralise(excerpt.left_out, 'character')} left out)")
        print_text(excerpt.tail, prefix=QUOTE_MARK)
