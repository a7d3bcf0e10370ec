"""A strategy for any struct, which draws each field from what its type allows."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from interlock.core.session.state import timestamp

TIMES = st.integers(0, 2**41).map(timestamp)
Strategy = st.SearchStrategy[Any]


def some(shape: type[msgspec.Struct], texts: Strategy, **named: Strategy) -> Strategy:
    """Return a strategy for `shape`. It draws `named` fields from their own, at any depth."""

    def drawn(kind: msgspec.inspect.Type) -> Strategy:
        match kind:
            case msgspec.inspect.Metadata(extra_json_schema={"format": "date-time"}):
                return TIMES
            case msgspec.inspect.AnyType():
                return st.none() | st.booleans() | texts | st.lists(texts, max_size=1)
            case msgspec.inspect.StrType():
                return texts
            case msgspec.inspect.BoolType():
                return st.booleans()
            case msgspec.inspect.IntType():
                return st.integers(kind.ge or 0, kind.le or 2**50)
            case msgspec.inspect.NoneType():
                return st.none()
            case msgspec.inspect.LiteralType():
                return st.sampled_from(kind.values)
            case msgspec.inspect.DictType():
                return st.dictionaries(texts, drawn(kind.value_type), max_size=2)
            case msgspec.inspect.VarTupleType():
                return st.lists(drawn(kind.item_type), max_size=2).map(tuple)
            case msgspec.inspect.UnionType():
                return st.one_of(*map(drawn, kind.types))
            case msgspec.inspect.StructType():
                return some(kind.cls, texts, **named)
            case _:
                raise AssertionError(f"{kind} is new here")

    fields = {
        field.name: drawn(msgspec.inspect.type_info(field.type))
        for field in msgspec.structs.fields(shape)
        if field.name not in named
    }
    known = {name: named[name] for name in shape.__struct_fields__ if name in named}
    return st.builds(shape, **fields, **known)
