"""The past of a node: what happened on the line of nodes that leads to it.

A run branches, so neither its events nor its head say what lies behind one node. Each node carries
the little that later steps need, derived from its parent's, so that no line has to be walked.
"""

from collections.abc import Mapping

import msgspec

from interlock.core.ids import GapId, StepId
from interlock.core.workflow.packs import Severity


class Past(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    done: tuple[tuple[int, int], ...] = ()
    """The numbers of the steps that were submitted and accepted, as ranges: first and last."""
    outputs: Mapping[StepId, str] = {}
    """The keys of the newest outputs of steps that are kept or quoted."""
    explained: tuple[str, ...] = ()
    """The contracts whose instructions a prompt has given whole."""
    open_gaps: tuple[tuple[GapId, Severity], ...] | None = None
    """The gaps that were left open on this line, as recorded; None in nodes of earlier versions."""
    gap_subjects: tuple[str, ...] = ()
    """The capabilities and context keys that a gap on this line is about: one each is enough."""

    @property
    def done_count(self) -> int:
        """The number of steps of the definition that were done, each once."""
        return sum(last - first + 1 for first, last in self.done)

    def skipped_count(self, number: int) -> int:
        """The number of steps that were passed by, where the step `number` is pending."""
        frontier = max(number - 1, self.done[-1][1] if self.done else 0)
        return frontier - self.done_count


def with_done(past: Past, number: int) -> Past:
    """The past with one more step done."""
    first, last = number, number
    others: list[tuple[int, int]] = []
    for one in past.done:
        if one[1] < first - 1 or one[0] > last + 1:
            others.append(one)
        else:  # it touches the number: they become one
            first, last = min(one[0], first), max(one[1], last)
    return msgspec.structs.replace(past, done=tuple(sorted([*others, (first, last)])))


def presumed_past(number: int) -> Past:
    """The past of a node that was recorded without one: every step before it was done."""
    return Past(done=((1, number - 1),)) if number > 1 else Past()
