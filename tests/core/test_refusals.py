"""Refusals that are only text: every placeholder names a field."""

import string
from importlib import import_module
from pathlib import Path

import interlock
from interlock.core.refusal import TextRefusal

SOURCE = Path(interlock.__file__).parents[1]


def test_the_placeholders_of_a_text_are_fields() -> None:
    for path in SOURCE.rglob("*.py"):
        if "(TextRefusal, frozen=True)" in path.read_text("utf-8"):
            import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts))

    unknown = {
        refusal.__name__: name
        for refusal in TextRefusal.__subclasses__()
        for _, name, _, _ in string.Formatter().parse(refusal.error + refusal.hint)
        if name is not None and name.partition(".")[0] not in refusal.__struct_fields__
    }

    assert TextRefusal.__subclasses__()
    assert unknown == {}
