"""Each limit of the tools: one below it, at it, and one above."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.driver.tools import file_work
from interlock.driver.tools.bounded_output import BoundedOutput
from interlock.driver.tools.catalogue import MalformedCall, check_call
from tests.driver.tools.file_calls import perform

SHOWN_MAX, SPILL_MAX = 10_000, 10_000_000
READ_MAX, FILE_MAX, BINARY_CHECK = 256 * 1024, 10_000_000, 8192


def shown(spill: Path, *chunks: bytes) -> str:
    output = BoundedOutput()
    for chunk in chunks:
        output.add(chunk)
    return output.show(spill)


@pytest.mark.parametrize("character", ["x", "ü", "🐦"])
def test_an_output_is_shown_whole_up_to_its_limit_in_characters(
    tmp_path: Path, character: str
) -> None:
    spill = tmp_path / "spill"
    for count in (SHOWN_MAX - 1, SHOWN_MAX):
        assert shown(spill, (character * count).encode()) == character * count
    assert not spill.exists()
    text = f"<{character * (SHOWN_MAX - 1)}>"

    head, note, end = shown(spill, text.encode()).split("\n")

    (kept,) = spill.iterdir()
    assert (head, end) == (text[: SHOWN_MAX // 2], text[-SHOWN_MAX // 2 :])
    assert note == (
        f"[… of {len(text.encode()):,} bytes, the middle is left out here; it is in `{kept}`,"
        " for Read and Grep …]"
    )
    assert kept.read_text() == text


def test_an_output_with_little_to_see_is_shown_whole_up_to_its_limit_in_bytes(
    tmp_path: Path,
) -> None:
    returns = b"\r" * 40_000

    assert shown(tmp_path / "spill", returns) == ""
    assert "of 40,001 bytes, the middle" in shown(tmp_path / "spill", returns, b"\r")


@pytest.mark.parametrize(
    ("size", "part"),
    [(SPILL_MAX - 1, "it is"), (SPILL_MAX, "it is"), (SPILL_MAX + 1, "the first 10 MB are")],
)
def test_the_beginning_of_an_output_is_kept_for_its_owner(
    tmp_path: Path, size: int, part: str
) -> None:
    content = b"a" * (SPILL_MAX - 2) + b"bcd"

    text = shown(tmp_path / "spill", content[:5], content[5:-3], content[-3:size])

    (kept,) = (tmp_path / "spill").iterdir()
    assert f"of {size:,} bytes, the middle is left out here; {part} in `{kept}`" in text
    assert text.endswith(content[:size][-3:].decode())
    assert kept.read_bytes() == content[: min(size, SPILL_MAX)]
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "spill", kept)]
    assert modes == [0o700, 0o600]


def test_an_output_that_cannot_be_kept_says_why_and_is_written_nowhere_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "spill").symlink_to("elsewhere")

    text = shown(tmp_path / "spill", b"x" * (SHOWN_MAX + 1))

    assert "the middle is left out here; it could not be kept: Not a directory …]" in text
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "it could not be kept: No such file" in shown(tmp_path / "no/spill", b"x" * 50_000)


@pytest.mark.parametrize("lines", [1, 4])
def test_a_file_is_read_whole_up_to_its_limit_in_bytes(tmp_path: Path, lines: int) -> None:
    line = b"x" * (READ_MAX // lines - 1) + b"\n"
    (tmp_path / "below").write_bytes((line * lines)[:-1])
    (tmp_path / "at").write_bytes(line * lines)
    (tmp_path / "above").write_bytes(line * lines + b"y")

    for name in ("below", "at"):
        assert perform(tmp_path, "Read", name).splitlines()[-1].startswith(f"{lines:6}\tx")
    *_, last = perform(tmp_path, "Read", "above").splitlines()

    assert last == f"[There is more: {READ_MAX + 1:,} bytes in all. Go on with offset {lines + 1}.]"
    assert perform(tmp_path, "Read", "above", offset=lines + 1) == f"{lines + 1:6}\ty"


def test_a_line_that_is_too_long_is_read_in_part_and_the_next_one_can_be_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "long").write_text("x" * (READ_MAX + 1) + "\nnext\n")

    first, more = perform(tmp_path, "Read", "long").splitlines()

    assert first == f"     1\t{'x' * READ_MAX}"
    assert more.endswith("Go on with offset 2.]")
    assert perform(tmp_path, "Read", "long", offset=2) == "     2\tnext"


def test_lines_are_counted_from_the_offset_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "three").write_text("a\r\nb\nc")

    def read(**fields: int) -> list[str]:
        return perform(tmp_path, "Read", "three", **fields).splitlines()

    assert read(limit=4) == read(limit=3) == ["     1\ta", "     2\tb", "     3\tc"]
    assert read(limit=2)[1:] == [
        "     2\tb",
        "[There is more: 6 bytes in all. Go on with offset 3.]",
    ]
    assert read(offset=3, limit=1) == ["     3\tc"]
    assert read(offset=4) == ["[It ends before line 4.]"]


def test_a_file_is_binary_if_a_zero_byte_is_near_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"x" * (BINARY_CHECK - 1) + b"\0x")
    (tmp_path / "text").write_bytes(b"x" * BINARY_CHECK + b"\0x")

    assert "`binary` is not text: a binary file of 8,193 bytes." in (
        perform(tmp_path, "Read", "binary")
    )
    assert perform(tmp_path, "Read", "text").startswith("     1\tx")
    found = perform(tmp_path, "Grep", pattern="x", files_only=True)
    assert found == "text\n[Skipped 1 file: not text, or too large.]"


def test_a_file_of_the_largest_size_is_edited_and_searched_and_a_larger_one_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "at").write_bytes(b"a" + b"x" * (FILE_MAX - 1))
    (tmp_path / "over").write_bytes(b"a" + b"x" * FILE_MAX)

    found = perform(tmp_path, "Grep", pattern="a", files_only=True)
    edited = [
        perform(tmp_path, "Edit", name, old_string="a", new_string="b") for name in ("at", "over")
    ]

    assert found == "at\n[Skipped 1 file: not text, or too large.]"
    assert edited == [
        f"Edited `{tmp_path / 'at'}`: replaced in line 1.",
        "`over` has more than 10,000,000 bytes.",
    ]
    assert (tmp_path / "at").read_bytes()[:2] == b"bx"
    assert (tmp_path / "over").read_bytes()[:2] == b"ax"


@pytest.mark.parametrize("count", [249, 250, 251])
def test_the_first_250_results_are_listed(tmp_path: Path, count: int) -> None:
    for number in range(count):
        (tmp_path / f"{number:03}").write_text("line\n")
    (tmp_path / "251 lines").write_text("other\n" * count)

    for what, found in (
        ("files", perform(tmp_path, "Glob", pattern="???")),
        ("files", perform(tmp_path, "Grep", pattern="line", files_only=True)),
        ("lines", perform(tmp_path, "Grep", pattern="line")),
        ("lines", perform(tmp_path, "Grep", "251 lines", pattern="other")),
    ):
        results = found.splitlines()
        more = f"[There are more; these are the first 250 {what}.]"
        assert results[250:] == ([more] if count > 250 else [])
        assert len(results) == min(count, 251)


def test_a_long_line_is_found_and_shown_in_part(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a" * 500 + "\n" + "a" * 501)

    found = perform(tmp_path, "Grep", pattern="a$")

    assert found == f"file:1:{'a' * 500}\nfile:2:{'a' * 500}…"


def test_a_search_in_too_many_files_or_for_too_long_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a", "inner/b", "inner/c"):
        (tmp_path / name).touch()
    cut = "[Not everything was looked at: there is too much. Name a path further down.]"

    monkeypatch.setattr(file_work, "ENTRIES_MAX", 4)
    assert perform(tmp_path, "Glob", pattern="**").splitlines() == ["a", "inner/b", "inner/c"]
    monkeypatch.setattr(file_work, "ENTRIES_MAX", 3)
    assert perform(tmp_path, "Glob", pattern="**").splitlines() == ["a", cut]
    monkeypatch.undo()
    monkeypatch.setattr(file_work, "SEARCH_SECONDS_MAX", -1)
    assert perform(tmp_path, "Grep", pattern="x").splitlines() == ["[No lines match.]", cut]


ARGUMENTS: dict[str, tuple[str, dict[str, Any], Any, Any]] = {
    "timeout_seconds": ("Bash", {"command": "x"}, (1, 600), (0, 601)),
    "command": ("Bash", {}, ("x", "x" * 30_000), ("", "x" * 30_001)),
    "offset": ("Read", {"file_path": "x"}, (1, 10**9), (0,)),
    "limit": ("Read", {"file_path": "x"}, (1, 100_000), (0, 100_001)),
    "file_path": ("Read", {}, ("x", "x" * 4096), ("", "x" * 4097)),
    "old_string": ("Edit", {"file_path": "x", "new_string": ""}, ("x",), ("",)),
    "pattern": ("Grep", {}, ("x", "x" * 1000), ("", "x" * 1001)),
    "glob": ("Grep", {"pattern": "x"}, ("", "x" * 1000), ("x" * 1001,)),
    "path": ("Glob", {"pattern": "x"}, ("", "x" * 4096), ("x" * 4097,)),
}
"""By field: a call without it, and the values at the edge that are and are not taken."""


@pytest.mark.parametrize("field", ARGUMENTS)
def test_an_argument_is_taken_up_to_its_bound(field: str) -> None:
    tool, others, taken, refused = ARGUMENTS[field]

    def check(value: object) -> bool:
        checked = check_call(tool, json.dumps({**others, field: value}))
        if isinstance(checked, MalformedCall):
            assert f"at `$.{field}`" in checked.message
        return not isinstance(checked, MalformedCall)

    assert [check(value) for value in taken] == [True] * len(taken)
    assert [check(value) for value in refused] == [False] * len(refused)


def test_the_arguments_of_a_call_are_counted_in_bytes() -> None:
    empty = json.dumps({"file_path": "x", "content": ""})
    for size, character in ((1_000_000, "x"), (1_000_001, "x"), (1_000_002, "ü")):
        count = (size - len(empty)) // len(character.encode())
        text = empty.replace('""', f'"{character * count}"')

        checked = check_call("Write", text)

        assert isinstance(checked, MalformedCall) == (size > 1_000_000), size
        if isinstance(checked, MalformedCall):
            assert f"The arguments have {len(text.encode()):,} bytes" in checked.message
    unknown = check_call("x" * 101, "{}")
    assert isinstance(unknown, MalformedCall)
    assert f"`{'x' * 100}`" in unknown.message
