"""The past of a node: what happened on the line of nodes that leads to it.

A run branches, so neither its events nor its head say what lies behind one node. Each node carries
the little that later steps need, derived from its parent's, so that no line has to be walked.
"""

from collections.abc import Mapping

import msgspec

from interlock.core.ids import StepId


class Past(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    done: tuple[tuple[int, int], ...] = ()
    """The numbers of the steps that were handed in and accepted, as ranges: first and last."""
    outputs: Mapping[StepId, str] = {}
    """The keys of the newest outputs of steps that are kept or quoted."""
    explained: tuple[str, ...] = ()
    """The contracts whose instructions a prompt has given whole."""

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
    numbers = {one for first, last in past.done for one in range(first, last + 1)} | {number}
    ranges: list[tuple[int, int]] = []
    for one in sorted(numbers):
        if ranges and ranges[-1][1] == one - 1:
            ranges[-1] = (ranges[-1][0], one)
        else:
            ranges.append((one, one))
    return msgspec.structs.replace(past, done=tuple(ranges))


def presumed_past(number: int) -> Past:
    """The past of a node that was recorded without one: every step before it was done."""
    return Past(done=((1, number - 1),)) if number > 1 else Past()
