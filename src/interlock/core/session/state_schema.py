"""The JSON Schema of a session's state, for whoever reads it; generated from its types."""

import msgspec

from interlock.core.session.state import SessionState

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def session_state_schema() -> bytes:
    _, defs = msgspec.json.schema_components([SessionState])
    for definition in defs.values():
        # Fields with a default are written too: a reader can count on every field.
        definition["required"] = list(definition["properties"])
    state = defs.pop("SessionState")
    schema = {"$schema": DIALECT, **state, "title": "Interlock session state", "$defs": defs}
    return msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"
