"""TOML that comes with a clone costs no more than its size."""

import tomllib

import pytest

from interlock.workspace.files.toml_text import KEY_PARTS_MAX, parse_toml


@pytest.mark.parametrize("part", [".a", " . a", '."a"', '."\\""', ".'\"'", '.""', "\t.\t-_9"])
@pytest.mark.parametrize("form", ["a{} = 1", "[a{}]", "[[a{}]]", "a = {{ b{} = 1 }}"])
def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed(part: str, form: str) -> None:
    sound = form.format(part * (KEY_PARTS_MAX - 1))
    assert parse_toml(sound.encode()) == tomllib.loads(sound), "the parser takes the part"

    with pytest.raises(ValueError, match="a key has more than"):
        parse_toml(form.format(part * 50_000).encode())


def test_dots_in_texts_and_remarks_are_no_keys() -> None:
    text = f"# {'.' * 300}\na = '{'. ' * 300}'\nb = [{'1.5, ' * 300}]\n"

    assert parse_toml(text.encode()) == tomllib.loads(text)
