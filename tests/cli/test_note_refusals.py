"""`interlock note`, refused: in the words of the command line, and with commands that work."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Said, Terminal
from tests.cli.note_files import INTERLOCK, put, run

N = "# N\n\n## One\n\nsame\nsame\n\n## Two\n\ntext\n"
TOOL_WORDS = (
    *("expectedReplacements", "find_replace", "replace_section", "insert_after_section"),
    *("findText", "workspacePath", "metadata", "search_notes", "requestId"),
)


def hint(said: Said) -> str:
    assert (said.code, said.out) == (1, ""), said
    text = said.err.partition("\n\nhint: ")[2]
    assert text
    assert not [word for word in TOOL_WORDS if word in said.err], said.err
    return text


def commands(said: Said) -> list[list[str]]:
    """Those that are suggested, as a shell takes them."""
    lines = said.err.splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("  interlock ")]


@pytest.mark.parametrize(
    ("arguments", "said", "instead"),
    [
        (("append", "--section", "One"), "append takes no --section", "insert-after"),
        (("prepend", "--section", "One"), "prepend takes no --section", "insert-before"),
        (("append", "--find", "text"), "append takes no --find", "find-replace"),
        (("append", "--expected", "2"), "append takes no --expected", "find-replace"),
        (("append", "--subsections"), "append takes no --subsections", "replace-section"),
        (("find-replace", "--find", "text", "--section", "One"), "takes no --section", "More of"),
        (("insert-after", "--section", "One", "--subsections"), "no --subsections", "replace-sec"),
        (("--set", "status=done", "--section", "One"), "--section", "replace-section"),
        (("--set", "status=done", "--content", "x"), "--content", "append"),
    ],
)
def test_what_an_edit_does_not_take_is_refused_with_the_one_that_fits(
    typed: Terminal, folder: Path, arguments: tuple[str, ...], said: str, instead: str
) -> None:
    file = put(folder, "n.md", N)
    more = () if "--content" in arguments else ("--content", "new")

    refused = typed("note", "edit", "n", *arguments, *more)

    assert instead in hint(refused)
    assert said in refused.err.partition("\n")[0]
    assert file.read_text() == N


def test_no_text_is_waited_for_where_the_edit_is_refused_anyhow(folder: Path) -> None:
    put(folder, "n.md", N)

    with subprocess.Popen(
        [*INTERLOCK, "note", "edit", "n", "append", "--section", "One"],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.wait(timeout=60) == 1


def test_hints_name_options_and_commands(typed: Terminal, folder: Path) -> None:
    put(folder, "n.md", N)
    typed("note", "write", "Use SQLite", "--content", "x")
    version = json.loads(typed("note", "write", "A", "--content", "mine", "--json").out)["version"]

    def told(*arguments: str) -> str:
        return hint(typed("note", *arguments))

    assert "--expected 2" in told("edit", "n", "find-replace", "--find", "same", "--content", "x")
    assert f"--overwrite {version}" in told("write", "A", "--content", "yours")
    stale = told("write", "A", "--content", "yours", "--overwrite", "0" * 12)
    assert f"--overwrite {version}" in stale
    assert f"--version {version}" in told("delete", "A", "--version", "0" * 12)
    assert "another path" in told("move", "n", "A")
    assert "--separate" in told("write", "Use SQLite!", "--content", "x")
    assert "interlock note search 'nothing like it'" in told("read", "nothing like it")
    assert "--set" in told("edit", "n")
    assert "--set" in told("edit", "n", "prepend", "--content", "---\na: 1\n---\n")
    wanted = told("edit", "n", "replace-section", "--section", "One", "--content", "x")
    assert "--version" in wanted
    assert "interlock note read n.md" in wanted
    put(folder, "n.md", f"{N}\n## One\n")
    twice = told("edit", "n", "insert-after", "--section", "One", "--content", "x")
    assert "find-replace" in twice
    several = ("edit", "n", "find-replace", "--find", "text", "--content", "x", "--expected", "2")
    assert "--expected 1" in told(*several)
    assert typed("note", *several).err.startswith("error: The text is there once (line 10)\n")
    assert typed("note", "write", "Use SQLite!", "--content", "x", "--separate").code == 0


MISUSES = {
    "note write": "",
    "note write T --content x --set no-value": "",
    "note edit n turn-around": "",
    "note search --limit many": "",
    "note search x --limit 0": "--limit",
    "note search x --limit 51": "--limit",
    "note recent --limit 0": "--limit",
    "note context n --limit 0": "--limit",
    "note context n --depth 99": "--depth",
    "note context n --depth -1": "--depth",
    "note graph n --depth 99": "--depth",
    "note search x --status frob": "--status",
}
"""Commands that cannot be meant, and the option that the error names, if one is out of range."""


@pytest.mark.parametrize("words", MISUSES)
def test_misuse_is_two(typed: Terminal, folder: Path, words: str) -> None:
    said = typed(*words.split())

    assert (said.code, said.out) == (2, "")
    assert MISUSES[words] in said.err
    assert "--help` shows how it is called." in said.err
    assert not folder.exists()


def test_outside_of_a_project_there_are_no_notes(typed: Terminal, tmp_path: Path) -> None:
    for arguments in (("search", "x"), ("write", "T", "--content", "x")):
        said = typed("note", *arguments)
        assert hint(said).startswith("Go to a directory of the project.")
        assert said.err.startswith(f"error: `{tmp_path}` is in no project, and notes belong to one")
    assert json.loads(typed("note", "recent", "--json").out)["code"] == "no_project"
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_a_delete_needs_the_version(typed: Terminal, folder: Path) -> None:
    put(folder, "n.md", N)
    version = json.loads(typed("note", "read", "n", "--json").out)["version"]

    refused = run("note", "delete", "n")

    assert (refused.returncode, refused.stdout) == (2, b"")
    assert f"--version {version} deletes it" in refused.stderr.decode()
    assert (folder / "n.md").exists()
    problem = json.loads(typed("note", "delete", "n", "--json").out)
    done = typed(*shlex.split(problem["commands"][0])[1:])
    assert (done.code, done.err, (folder / "n.md").exists()) == (0, "", False)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("read", "it's"), ["note", "read", "it's one.md"]),
        (("context", "it's"), ["note", "context", "it's one.md"]),
        (("move", "it's", "to/"), ["note", "move", "it's one.md", "to/"]),
        (("delete", "it's", "--version", "0" * 12), ["note", "delete", "it's one.md"]),
        (
            ("edit", "it's", "append", "--content", "x y"),
            ["note", "edit", "it's one.md", "append", "--content", "x y"],
        ),
    ],
)
def test_suggested_commands_are_of_the_same_kind_and_can_be_typed(
    typed: Terminal, folder: Path, arguments: tuple[str, ...], expected: list[str]
) -> None:
    put(folder, "it's one.md", "# It's one\n")

    refused = typed("note", *arguments)

    assert expected in commands(refused)
    assert shlex.join(("interlock", *expected)) in refused.err


def test_a_section_that_is_nearly_right_is_not_taken_for_a_note(
    typed: Terminal, folder: Path
) -> None:
    put(folder, "n.md", N)

    refused = typed("note", "edit", "n", "insert-after", "--section", "Onee", "--content", "x")

    assert commands(refused) == [
        ["note", "edit", "n", "insert-after", "--section", "## One", "--content", "x"]
    ]
    assert typed(*commands(refused)[0]).code == 0


def test_more_notes_than_are_named_are_not_counted_as_those(typed: Terminal, folder: Path) -> None:
    for number in range(28):
        put(folder, f"n{number}.md", "text")

    refused = typed("note", "read", "*")

    assert refused.err.startswith("error: More than 5 notes are called `*`\n")
    assert len(commands(refused)) == 5
    put(folder, "one/same.md", "x")
    put(folder, "two/same.md", "x")
    assert typed("note", "read", "same").err.startswith("error: 2 notes are called `same`\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("note", "delete", "n"), 2, "needs the version"),
        (("note", "edit", "n", "--set", "novalue"), 2, "is not KEY=VALUE"),
        (("note", "recent", "--since", "when it rained"), 2, "is no span of time"),
        (("note", "edit", "n", "append", "--section", "One"), 1, "takes no --section"),
        (("note", "edit", "n"), 1, "neither an operation"),
        (("note", "read", "nothing"), 1, "There is no note"),
    ],
)
def test_with_json_a_refusal_is_one_object_too(
    typed: Terminal, folder: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    put(folder, "n.md", N)
    content = ("--content", "x") if "append" in arguments else ()

    refused = typed(*arguments, *content, "--json")

    assert (refused.code, refused.err) == (code, "")
    problem = json.loads(refused.out)
    assert said in problem["error"]
    assert problem["hint"]
    assert problem["code"]


@pytest.mark.parametrize("arguments", [("store", "stats"), ("session", "list"), ("note", "recent")])
def test_with_json_an_unusable_store_is_one_object_too(
    typed: Terminal,
    folder: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setenv("INTERLOCK_HOME", str(home / "file" / "below"))
    home.mkdir()
    (home / "file").write_text("")

    refused = typed(*arguments, "--json")

    assert (refused.code, refused.err, folder.exists()) == (1, "", False)
    problem = json.loads(refused.out)
    assert (problem["code"], problem["error"][:13]) == ("store_failed", "The data home")
    assert "INTERLOCK_HOME" in problem["hint"]


def test_with_json_settings_that_cannot_be_read_are_one_object_too(
    typed: Terminal, tmp_path: Path
) -> None:
    put(tmp_path, ".interlock/config.toml", "[notes\n")

    refused = typed("trust", "--show", "--json")

    assert (refused.code, refused.err) == (1, "")
    assert json.loads(refused.out)["code"] == "settings_broken"


@pytest.mark.parametrize(
    "words", ["note recent", "workflow list", "trust --show", "doctor claude-code"]
)
def test_a_directory_that_is_gone_is_said_to_be_gone(
    typed: Terminal, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("PWD", str(gone))
    gone.rmdir()

    refused = typed(*words.split())
    as_json = typed(*words.split(), "--json")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(
        f"error: The directory `{gone}` does not exist any more\n\nhint: "
    )
    assert (as_json.code, as_json.err) == (1, "")
    assert "does not exist any more" in json.loads(as_json.out)["error"]
    assert not (home / "logs").exists()


def test_a_project_without_notes_is_not_asked_about_times(typed: Terminal, folder: Path) -> None:
    none = "There are no notes yet; `interlock note write TITLE` makes one.\n"

    assert not folder.exists()
    assert typed("note", "recent") == Said(0, none, "")
    assert typed("note", "graph") == Said(0, none, "")
    assert typed("note", "search", "x").out == "Nothing was found.\n"
    os.utime(put(folder, "old.md", "x"), (1, 1))
    assert typed("note", "recent").out == (
        "No note was changed in that time (7d); --since looks further back.\n"
    )
    assert typed("note", "graph").out == "No note links to another.\n"
    assert typed("note", "graph", "--mermaid").out.startswith("graph LR\n")


def test_a_path_as_a_shell_completes_it_names_the_note(
    typed: Terminal, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "sub/Backups.md", "below")
    put(folder, "top.md", "here")
    (tmp_path / "secret.md").write_text("secret")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "src").mkdir()
    completed = ".interlock/notes/sub/Backups.md"

    assert typed("note", "read", completed).out == "below"
    assert typed("note", "read", f"./{completed}").out == "below"
    assert typed("note", "read", str(tmp_path / completed)).out == "below"
    assert typed("note", "edit", completed, "append", "--content", "more").code == 0
    assert typed("note", "context", completed).out.startswith("sub/Backups.md")
    assert typed("note", "graph", completed).code == 0
    assert typed("note", "read", "./secret.md").code == 1
    assert typed("note", "read", ".interlock/notes/../../secret.md").code == 1
    assert typed("note", "read", ".interlock/notes/link.md").code == 1
    monkeypatch.chdir(tmp_path / "src")
    assert typed("note", "read", f"../{completed}").out.startswith("below")
    assert typed("note", "read", completed).out.startswith("below"), "from the project on"
    put(folder, "sub/top.md", "another")
    monkeypatch.chdir(folder / "sub")
    assert typed("note", "read", "top.md").out == "here", "a path from the notes folder comes first"
    assert typed("note", "read", "./top.md").out == "another"
    monkeypatch.chdir(tmp_path)
    assert typed("note", "move", completed, "moved/").code == 0
    version = json.loads(typed("note", "read", "top.md", "--json").out)["version"]
    assert typed("note", "delete", ".interlock/notes/top.md", "--version", version).code == 0
