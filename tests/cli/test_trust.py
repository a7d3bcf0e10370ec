"""`interlock trust` and `interlock gate bypass`, as typed."""

import io
import json
import sys
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from interlock.workspace.machine import grants
from tests.cli.conftest import Terminal
from tests.hooks.desk import Desk

LOOSE = """\
[project]
profile = "light"

[gate]
reading_tools = ["mcp__docs__search", "\\u001b[2Jgone"]

[gate.rules]
"shell.unknown" = "advisory"
"""


@pytest.fixture
def desk(home: Path, tmp_path: Path) -> Desk:
    return Desk(home, tmp_path)


def asked(monkeypatch: pytest.MonkeyPatch, desk: Desk, tool: str) -> None:
    """What `interlock gate test` reads."""
    payload = {"session_id": desk.session, "cwd": str(desk.project), "tool_name": tool}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)


def test_what_would_be_loosened_is_shown_before_it_is(typed: Terminal, desk: Desk) -> None:
    desk.config(LOOSE)

    said = typed("trust", "--show")

    assert said.code == 0
    assert said.out.replace(str(desk.project), "PROJECT") == snapshot("""\
  profile              light                           sessions begin in coding
  reading_tools        mcp__docs__search, \\x1b[2Jgone  nobody is asked about these tools
  rules.shell.unknown  advisory                        what it would deny is told, and allowed
It loosens the above. PROJECT/.interlock/config.toml is not trusted: it does not count.
""")
    assert not (desk.home / grants.TRUSTED_FILE).exists()


def test_there_is_nothing_to_trust_without_a_config_that_loosens(
    typed: Terminal, desk: Desk
) -> None:
    said = typed("trust")

    assert said.code == 1
    assert "has not opted in" in said.err
    assert json.loads(typed("trust", "--json").out)["code"] == "not_opted_in"
    desk.config('[project]\nprofile = "strict"\n')
    assert typed("trust", "--show").out.startswith("It loosens nothing. ")
    assert "systemMessage" not in desk.begin()


def test_trust_from_a_directory_below_lists_the_notes_folder_of_the_project(
    typed: Terminal, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.config('[notes]\nfolder = "docs"\n')
    below = desk.project / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)

    given = json.loads(typed("trust", "--json").out)
    (found,) = given["loosens"]
    assert given["root"] == str(desk.project)
    assert (found["setting"], found["value"]) == ("notes.folder", "docs")


def test_what_the_user_chose_here_is_trusted_at_once(typed: Terminal, desk: Desk) -> None:
    assert typed("init", "--profile", "light").code == 0

    told = desk.begin()

    assert "Mode: coding" in told["hookSpecificOutput"]["additionalContext"]
    assert "systemMessage" not in told


def test_opting_in_again_trusts_nothing_that_was_there(typed: Terminal, desk: Desk) -> None:
    desk.config(LOOSE)

    said = typed("init", "--profile", "light")

    assert "has opted in already (profile light)" in said.out
    assert "note: 3 settings of .interlock/config.toml are not trusted" in said.out
    assert "Mode: analysis" in desk.begin()["hookSpecificOutput"]["additionalContext"]


def test_the_gate_says_what_is_not_trusted(
    typed: Terminal, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.config(LOOSE)
    desk.begin()
    heard = desk.tool("mcp__docs__search")
    name = heard.text.rpartition("gate_")[2].rstrip(")")
    not_trusted = "note: 3 settings of .interlock/config.toml are not trusted"

    assert not_trusted in typed("gate", "explain", f"gate_{name}").out
    asked(monkeypatch, desk, "mcp__docs__search")
    tested = typed("gate", "test").out
    assert tested.startswith("ask: tool.unlisted")
    assert not_trusted in tested
    asked(monkeypatch, desk, "mcp__docs__search")
    remarks = json.loads(typed("gate", "test", "--json").out)["remarks"]
    assert ["interlock trust" in remark for remark in remarks] == [True]


def test_a_payload_that_no_client_sends_is_misuse(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (b"", b"x", b"[]"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        said = typed("gate", "test")
        assert (said.code, said.out) == (2, "")
        assert "is not what a client sends" in said.err


def test_a_rule_is_opened_seen_used_and_closed(
    typed: Terminal, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed("init")
    desk.begin()
    assert typed("gate", "bypass", "list").out == "No rule is open.\n"

    added = typed(
        "gate", "bypass", "add", "mode.analysis", "--reason", "a  try\nout", "--project", "."
    )

    (made,) = json.loads(typed("gate", "bypass", "list", "--json").out)
    assert (made["rule"], made["reason"], made["project"]) == (
        "mode.analysis",
        "a try out",
        str(desk.project),
    )
    where = f"in {desk.project}"
    assert added.out == (
        f"{made['id']} opens mode.analysis {where}, until it is removed.\n"
        f"To close it: interlock gate bypass remove {made['id']}\n"
    )
    listed = typed("gate", "bypass", "list").out
    assert listed == (f"{made['id']}  mode.analysis  until it is removed  {where}  a try out\n"), (
        listed
    )
    assert desk.tool("Write", file_path="a").answer == "allow"
    logged = typed("gate", "log").out
    assert f"-> let through by {made['id']}: a try out" in logged
    name = logged.split()[0]
    assert f"let through by: {made['id']}: a try out" in typed("gate", "explain", name).out
    asked(monkeypatch, desk, "Write")
    assert f"let through by: {made['id']}" in typed("gate", "test").out
    removed = typed("gate", "bypass", "remove", made["id"])
    assert removed.out == f"{made['id']} is gone: mode.analysis holds again.\n"
    assert desk.tool("Write", file_path="a").answer == "deny"


def test_a_bypass_can_be_over(typed: Terminal, home: Path) -> None:
    made = json.loads(
        typed(
            "gate", "bypass", "add", "shell.unknown", "--reason", "x", "--days", "2", "--json"
        ).out
    )
    assert made["untilMs"] - made["atMs"] == 2 * 86_400_000
    assert made["project"] == ""
    assert "  until 20" in typed("gate", "bypass", "list").out
    stored = home / grants.BYPASSES_FILE
    stored.write_text(stored.read_text().replace(str(made["untilMs"]), "1000"))

    assert "over since 1970-01-01 00:00 UTC" in typed("gate", "bypass", "list").out


@pytest.mark.parametrize("rule", ["user.only", "path.protected", "state.unknown", "protocol.start"])
def test_what_binds_the_agent_cannot_be_opened(typed: Terminal, home: Path, rule: str) -> None:
    said = typed("gate", "bypass", "add", rule, "--reason", "please")

    assert said.code == 1
    assert said.err.startswith(f"error: The rule `{rule}` cannot be opened\n\nhint: These can: ")
    refused = json.loads(typed("gate", "bypass", "add", rule, "--reason", "x", "--json").out)
    assert refused["code"] == "not_bypassed"
    assert not (home / grants.BYPASSES_FILE).exists()


def test_a_bypass_that_makes_no_sense_is_refused(typed: Terminal, tmp_path: Path) -> None:
    add = ("gate", "bypass", "add")
    assert typed(*add, "no.such.rule", "--reason", "x").code == 2
    assert typed(*add, "shell.unknown").code == 2
    assert typed(*add, "shell.unknown", "--reason", "x", "--days", "0").code == 2
    assert "needs a reason" in typed(*add, "shell.unknown", "--reason", " ").err
    nowhere = typed(*add, "shell.unknown", "--reason", "x", "--project", str(tmp_path))
    assert "has not opted in" in nowhere.err
    gone = typed("gate", "bypass", "remove", "byp_none")
    assert (gone.code, "There is no bypass `byp_none`" in gone.err) == (1, True)


def test_lists_that_are_not_ours_are_named_and_kept(typed: Terminal, home: Path) -> None:
    typed("init")
    for name, command in (
        (grants.BYPASSES_FILE, ("gate", "bypass", "add", "shell.unknown", "--reason", "x")),
        (grants.TRUSTED_FILE, ("trust",)),
    ):
        (home / name).write_text("not ours")

        said = typed(*command)

        assert said.code == 1
        assert said.err.startswith(f"error: `{home / name}` cannot be used: ")
        assert (home / name).read_text() == "not ours"


def test_a_data_home_that_cannot_be_written_is_told(
    typed: Terminal, desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.config(LOOSE)
    home.mkdir()
    (home / "file").write_text("")
    monkeypatch.setenv("INTERLOCK_HOME", str(home / "file"))

    for command in (("trust",), ("gate", "bypass", "add", "shell.unknown", "--reason", "x")):
        said = typed(*command)

        assert said.code == 1
        assert said.err.startswith(f"error: `{home / 'file'}` cannot be written: ")
