"""The refusal: an answer of the domain that says no."""

import msgspec

from interlock.core.explanation import Explanation


class Refusal(msgspec.Struct, frozen=True):
    """Returned, compared and shown, never raised."""

    def explain(self) -> Explanation:
        raise NotImplementedError
