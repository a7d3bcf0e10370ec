"""Surgery on JSON texts: what was not operated on is the same to the byte."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.canonical import Json
from interlock.workspace.files import file_replacement, json_patch
from interlock.workspace.files.file_replacement import FileChangedMeanwhile
from interlock.workspace.files.json_patch import Edit, Splice, UnusableJson
from interlock.workspace.files.json_scan import BOM

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(0.5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
names = st.sampled_from(("a", "b", "hooks", "ü"))
additions = st.dictionaries(
    names,
    st.dictionaries(names, st.lists(values, min_size=1, max_size=2), min_size=1, max_size=3)
    | st.lists(values, min_size=1, max_size=2),
    min_size=1,
    max_size=3,
)
documents = st.dictionaries(
    names,
    values | st.dictionaries(names, st.lists(values, max_size=2), max_size=3),
    max_size=4,
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A document as somebody's editor or program would have left it."""
    value = draw(documents)
    text = json.dumps(
        value,
        indent=draw(st.sampled_from((None, 0, 1, 2, 4, "\t"))),
        separators=draw(st.sampled_from(((",", ":"), (", ", ": "), (" ,", " : "), (",", ": ")))),
        ensure_ascii=draw(st.booleans()),
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    space = st.text(" \t\r\n", max_size=2)
    return draw(st.sampled_from(("", BOM))) + draw(space) + text + draw(space)


def joined(found: Mapping[str, Any], addition: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the graft should mean; None where the two cannot be joined."""
    out = dict(found)
    for name, value in addition.items():
        there = out.get(name)
        if name not in out:
            out[name] = value
        elif isinstance(value, dict) and isinstance(there, dict):
            inner = joined(there, value)  # pyright: ignore[reportUnknownArgumentType]
            if inner is None:
                return None
            out[name] = inner
        elif isinstance(value, list) and isinstance(there, list):
            out[name] = [*there, *value]
        else:
            return None
    return out


def grafted(text: str, addition: Mapping[str, Json]) -> Edit:
    edit = json_patch.insert(text, addition)
    assert isinstance(edit, Edit)
    return edit


def meaning(text: str) -> Any:
    return json.loads(text.removeprefix(BOM) or "{}")


@given(texts(), additions)
@example("{}", {"a": {"b": [1]}})
@example('{"a": {}}', {"a": {"b": [1]}})
@example('{"a":1\n,"hooks":{"a":[]}}', {"hooks": {"a": [1], "b": [2]}, "b": [3]})
def test_what_is_put_in_means_what_was_meant_and_cut_out_again_it_leaves_no_trace(
    text: str, addition: dict[str, Json]
) -> None:
    edit = json_patch.insert(text, addition)
    wanted = joined(meaning(text), addition)

    assert isinstance(edit, UnusableJson) == (wanted is None)
    if isinstance(edit, Edit):
        assert meaning(edit.text) == wanted
        assert json_patch.cut_splices(edit.text, edit.splices) == text
        assert len(edit.text) == len(text) + sum(len(splice.text) for splice in edit.splices)


@given(texts(), st.data())
def test_what_is_removed_is_gone_and_nothing_else_is(text: str, data: st.DataObject) -> None:
    found = meaning(text)
    if not found:
        return
    name = data.draw(st.sampled_from(sorted(found)))
    path: tuple[str | int, ...] = (name,)
    if isinstance(found[name], dict | list) and found[name] and data.draw(st.booleans()):
        inner: Any = found[name]
        keys: list[Any] = list(inner if hasattr(inner, "keys") else range(len(inner)))
        path = (name, data.draw(st.sampled_from(keys)))
        del inner[path[1]]
    else:
        del found[name]

    rest = json_patch.remove(text, [path], created_paths=())

    assert meaning(rest) == found
    assert len(rest) < len(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", '{\n  "m": {\n    "x": [\n      1\n    ]\n  }\n}\n'),
        ("{}", '{\n  "m": {\n    "x": [\n      1\n    ]\n  }\n}'),
        ("{\n}\n", '{\n  "m": {\n    "x": [\n      1\n    ]\n  }\n}\n'),
        ('{"a":1}', '{"a":1,"m":{"x":[1]}}'),
        ('{"a": 1}', '{"a": 1, "m": {"x": [1]}}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"m": {\n\t\t"x": [\n\t\t\t1\n\t\t]\n\t}\n}'),
        ('{\n    "m": {}\n}', '{\n    "m": {\n        "x": [\n            1\n        ]\n    }\n}'),
        ('{"m": {}}', '{"m": {"x": [1]}}'),
        ('{\n  "m": {"x": [0]}\n}', '{\n  "m": {"x": [0, 1]}\n}'),
        ('{\n  "m": {\n    "x": []\n  }\n}', '{\n  "m": {\n    "x": [\n      1\n    ]\n  }\n}'),
        (
            '{\r\n  "m": {\r\n  }\r\n}',
            '{\r\n  "m": {\r\n    "x": [\r\n      1\r\n    ]\r\n  }\r\n}',
        ),
        ('{"m": 1, "m": {"y": 2}}', '{"m": 1, "m": {"y": 2, "x": [1]}}'),
    ],
)
def test_what_is_put_in_looks_like_what_is_around_it(text: str, wanted: str) -> None:
    assert grafted(text, {"m": {"x": [1]}}).text == wanted


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", "holds an array, where an object was expected"),
        ("null", "holds null, where an object was expected"),
        ("{", "is not JSON: "),
        ('{"a": 1,}', "is not JSON: "),
        ('// why\n{"a": 1}', "is not JSON: Expecting value (line 1, column 1)"),
        ('{"a": NaN}', "is not JSON: NaN is no JSON number"),
        ('{"a": "\n"}', "is not JSON: "),
        ("{} {}", "is not JSON: something follows the end of the value (line 1)"),
        ("[" * 100_000, "is nested more deeply than can be read"),
        ('{"m": []}', "has an array at `m`, where an object was expected"),
        ('{"m": null}', "has null at `m`, where an object was expected"),
        ('{"m": {"x": {}}}', "has an object at `m.x`, where an array was expected"),
        ('{"m": {"x": true}}', "has true or false at `m.x`, where an array was expected"),
    ],
)
def test_what_cannot_be_operated_on_is_left_alone_with_the_reason(text: str, what: str) -> None:
    refused = json_patch.insert(text, {"m": {"x": [1]}})

    assert isinstance(refused, UnusableJson)
    assert refused.what.startswith(what)


def test_a_text_that_is_not_utf8_is_told_where() -> None:
    assert json_patch.decode(b'{"a": "\xff"}') == UnusableJson("is not UTF-8 (byte 7)")


def test_large_and_odd_texts_are_no_trouble() -> None:
    numbers = ", ".join(["1" * 5_000, "1e999", "-0"])
    text = f'{{"deep": {"[" * 200}{"]" * 200}, "long": "{"x" * 1_000_000}", "n": [{numbers}]}}'

    edit = grafted(text, {"m": {"x": [1]}})

    assert edit.text == text[:-1] + ', "m": {"x": [1]}}'
    assert json_patch.cut_splices(edit.text, edit.splices) == text


def test_a_splice_is_found_again_wherever_it_went() -> None:
    edit = grafted('{\n  "a": 1\n}\n', {"m": {"x": [1]}})
    moved = edit.text.replace('"a": 1', '"before": [1, 2, 3],\n  "a": 1')

    assert json_patch.cut_splices(moved, edit.splices) == '{\n  "before": [1, 2, 3],\n  "a": 1\n}\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"x": [', '"x":  ['),  # formatted otherwise
        ("1\n    ]", "2\n    ]"),  # changed
        ('{\n  "m"', '{\n  "q": 0,\n  "m"'),  # it stood alone, so its own comma is missing
    ],
)
def test_a_splice_that_was_touched_is_not_cut(before: str, after: str) -> None:
    edit = grafted("{\n}\n", {"m": {"x": [1]}})
    touched = edit.text.replace(before, after)
    assert touched != edit.text

    assert json_patch.cut_splices(touched, edit.splices) is None


def test_a_splice_that_is_there_twice_is_not_cut() -> None:
    assert (
        json_patch.cut_splices('{"a": 1, "b": {"q": 0, "b": 2}, "b": 2}', [Splice(0, ', "b": 2')])
        is None
    )
    assert json_patch.cut_splices('{"a": 1, "b": 2}', [Splice(0, ', "b": 2')]) == '{"a": 1}'


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ((), '{"m": {"x": []}, "z": 0}'),
        ((("m", "x"),), '{"m": {}, "z": 0}'),
        ((("m",),), '{"z": 0}'),
        (None, '{"z": 0}'),
    ],
)
def test_what_becomes_empty_goes_only_if_it_came_with_us(
    made: tuple[tuple[str, ...], ...] | None, wanted: str
) -> None:
    assert (
        json_patch.remove('{"m": {"x": [1, 2]}, "z": 0}', [("m", "x", 0), ("m", "x", 1)], made)
        == wanted
    )


def test_a_document_that_came_with_us_goes_as_a_whole() -> None:
    text = '{ "m": {"x": [1]} }'

    assert json_patch.remove(text, [("m", "x", 0)], created_paths=((),)) == ""
    assert json_patch.remove(text, [("m", "x", 0)], created_paths=None) == "{}"


@pytest.mark.parametrize(
    ("doomed", "wanted"),
    [
        ([0], "[2,\n 3, 4]"),
        ([3], "[1, 2,\n 3]"),
        ([0, 1], "[3, 4]"),
        ([1, 2], "[1, 4]"),
        ([0, 3], "[2,\n 3]"),
        ([0, 1, 2, 3], "[]"),
    ],
)
def test_items_go_with_one_of_their_commas(doomed: list[int], wanted: str) -> None:
    text = '{"a": [1, 2,\n 3, 4]}'

    paths = [("a", place) for place in doomed]

    assert json_patch.remove(text, paths, created_paths=()) == f'{{"a": {wanted}}}'


def test_a_file_keeps_its_mode_and_owner_and_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "real.json", tmp_path / "link.json"
    file.write_bytes(b"old")
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 1234, 4321)
    owner = (file.stat().st_uid, file.stat().st_gid)
    link.symlink_to("real.json")

    file_replacement.replace(link, b"old", b"new")

    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o7777 == 0o640
    assert (file.stat().st_uid, file.stat().st_gid) == owner
    assert {path.name for path in tmp_path.iterdir()} == {"real.json", "link.json"}


def test_a_file_that_somebody_else_wrote_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"theirs")

    with pytest.raises(FileChangedMeanwhile):
        file_replacement.replace(file, b"read before", b"ours")
    with pytest.raises(FileChangedMeanwhile):
        file_replacement.replace(file, None, b"ours")
    with pytest.raises(FileChangedMeanwhile):
        file_replacement.delete(file, b"read before")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [
        ("a.json", b"theirs")
    ]


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file_replacement.replace(file, b"old", b"new")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.json", b"old")]


def test_what_stands_in_the_way_of_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "fixed").write_bytes(b"")
    (tmp_path / "fixed").chmod(0o444)
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")

    assert file_replacement.obstacle(tmp_path / "new" / "file") == ""
    assert file_replacement.obstacle(tmp_path / "fixed") == "is read-only"
    assert file_replacement.obstacle(tmp_path / "nowhere") == "is a link to nothing"
    assert file_replacement.obstacle(tmp_path / "directory") == "is not a file"
    assert "cannot be read" in file_replacement.obstacle(tmp_path / "loop")
    assert file_replacement.obstacle(tmp_path / "fixed" / "file") == (
        f"cannot be made: `{tmp_path / 'fixed'}` is not a directory"
    )
