"""Shortcomings of an output: each is a blocker, or a gap where the run goes on in spite of it."""

import msgspec

from interlock.core.session.blockers import Blocker
from interlock.core.session.events import GapCategory
from interlock.core.workflow.packs import Severity


class NewGap(msgspec.Struct, frozen=True):
    """Something left undone while the run goes on."""

    category: GapCategory
    severity: Severity
    summary: str
    subject: str = ""
    """The capability or context key that it is about, if any: one gap for each in a run."""


class Shortcoming(msgspec.Struct, frozen=True):
    """Something that is wrong. The preferences say whether it stops the run or becomes a gap."""

    blocker: Blocker
    gap: NewGap
