"""The refusal: an answer of the domain that says no."""

from typing import ClassVar

import msgspec

from interlock.core.explanation import Code, Explanation


class Refusal(msgspec.Struct, frozen=True):
    """Returned, compared and shown, never raised."""

    def explain(self) -> Explanation:
        raise NotImplementedError


class PlainRefusal(Refusal, frozen=True):
    """A refusal that is only shown; no caller needs its type."""

    code: Code
    error: str
    hint: str
    candidates: tuple[str, ...] = ()

    def explain(self) -> Explanation:
        return Explanation(self.code, self.error, self.hint, self.candidates)


class TextRefusal(Refusal, frozen=True):
    """A refusal that is always explained by the same text, in which `{field}` is that field.

    A field `candidates` is what may have been meant.
    """

    code: ClassVar[Code]
    error: ClassVar[str]
    hint: ClassVar[str]

    def explain(self) -> Explanation:
        fields = msgspec.structs.asdict(self)
        error, hint = self.error.format_map(fields), self.hint.format_map(fields)
        return Explanation(self.code, error, hint, fields.get("candidates", ()))
