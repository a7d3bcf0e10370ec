"""The form that all events share."""

import msgspec


class EventStruct(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """Tags are written out: a class may be renamed, history may not."""
