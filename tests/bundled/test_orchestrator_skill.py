"""The orchestrator skill: its scripts stand alone, and answer as the core does."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from interlock.core.coordination import boxes
from interlock.core.coordination.board import Board, BoardRow
from interlock.core.coordination.conflicts import WorkScope, find_conflicts
from interlock.core.coordination.identities import choose_id, display_name
from interlock.core.coordination.inbox_sessions import fold_inbox
from interlock.core.coordination.path_patterns import PathSet, covers
from interlock.core.coordination.records import Identity, Reservation, WorkItem
from interlock.core.coordination.session_record import ObservedSession
from interlock.workspace.projects.catalogue import BUNDLED_DIRECTORY

SKILL = BUNDLED_DIRECTORY / "skills" / "orchestrator"
SCRIPTS = SKILL / "scripts"
RUN_SCRIPTS = ("preflight", "session_identity", "session_cleanup")
FIXTURES = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((Path(__file__).parent / "orchestrator").glob("*.json"))
}
START_S = 1_735_689_600
NOW_S = START_S + 1_800
LEASE_MS = 3_600_000


def run(script: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPTS / f"{script}.py"), *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def answer(script: str, *arguments: str, stdin: str = "") -> Any:
    done = run(script, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def detect(name: str, *more: str) -> Any:
    asked = FIXTURES[name]["ask"]
    options = [
        *(word for key in ("self", "track") if key in asked for word in (f"--{key}", asked[key])),
        *(word for key in ("files", "beads") if key in asked for word in (f"--{key}", *asked[key])),
    ]
    messages = json.dumps(FIXTURES[name]["messages"])
    return answer("preflight", "detect", "--now", str(NOW_S), *options, *more, stdin=messages)


def folded(name: str) -> tuple[ObservedSession, ...]:
    fixture = FIXTURES[name]
    own = fixture["ask"].get("self", "")
    return fold_inbox(fixture["messages"], own=own, now_ms=NOW_S * 1_000)


def as_json(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def board_of(sessions: tuple[ObservedSession, ...]) -> Board:
    """What the store would hold of these sessions."""
    there = [one.record for one in sessions if one.record.status != "ended"]
    seen = {one.id: (one.last_heartbeat or 0) * 1_000 for one in there}
    return Board(
        1,
        NOW_S * 1_000,
        {
            one.id: BoardRow(
                Identity(one.id, one.base_agent, one.id, one.epoch, 0, 1, track=one.track or ""), 1
            )
            for one in there
        },
        reservations={
            f"{one.id} {at}": BoardRow(
                Reservation(f"{at}", one.id, pattern, seen[one.id] + LEASE_MS, 0), 1
            )
            for one in there
            for at, pattern in enumerate(one.files_reserved)
        },
        work={
            bead: BoardRow(WorkItem(bead, bead, 0, 0, "in_progress", assignee=one.id), 1)
            for one in there
            for bead in one.beads_claimed
        },
        seen_ms=seen,
    )


@pytest.mark.parametrize("name", FIXTURES)
def test_the_script_and_the_core_see_the_same_sessions(name: str) -> None:
    fixture, sessions = FIXTURES[name], folded(name)
    by_status = {
        status: [one for one in sessions if one.record.status == status]
        for status in ("active", "stale")
    }

    found = detect(name)

    assert found["active_sessions"] == [as_json(one.record) for one in by_status["active"]]
    assert found["stale_sessions"] == [
        {**as_json(one.record), "stale_minutes": one.minutes_silent, "stale_reason": one.reason}
        for one in by_status["stale"]
    ]
    assert [one["id"] for one in found["active_sessions"]] == fixture["active"]
    assert {one["id"]: one["stale_reason"] for one in found["stale_sessions"]} == fixture["stale"]
    assert found["count"] == len(fixture["active"])


@pytest.mark.parametrize("name", FIXTURES)
def test_the_order_of_mail_does_not_matter_to_the_script_de1(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = detect(name)
    monkeypatch.setitem(FIXTURES[name], "messages", FIXTURES[name]["messages"][::-1])

    assert detect(name) == expected


@pytest.mark.parametrize("name", FIXTURES)
def test_the_script_and_the_core_see_the_same_conflicts(name: str) -> None:
    asked = FIXTURES[name]["ask"]
    scope = WorkScope(
        asked.get("track", ""),
        PathSet(tuple(asked["files"])) if "files" in asked else None,
        tuple(asked.get("beads", ())),
    )
    expected = as_json(find_conflicts(board_of(folded(name)), "", scope))

    found = detect(name)["conflicts"]

    assert [
        kind for kind in ("track", "file", "bead") for _ in found[f"{kind}_conflicts"]
    ] == FIXTURES[name]["conflicts"]
    for conflict in found["file_conflicts"]:
        for pattern in (conflict["pattern"], conflict["requested"]):
            assert covers(PathSet((pattern,)), conflict["overlap"])
    # Mail does not say since when a bead is claimed, and there may be several paths in common.
    for one in (*found["file_conflicts"], *expected["file_conflicts"]):
        del one["overlap"]
    for one in (*found["bead_conflicts"], *expected["bead_conflicts"]):
        del one["since"], one["next_action"]
    assert found == expected


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", FIXTURES)
def test_the_script_and_the_core_draw_the_same_boxes_op2(name: str, *, plain: bool) -> None:
    found = detect(name)
    listed = [one for one in folded(name) if one.record.status != "ended"]
    words = ["--now", str(NOW_S), *(["--plain"] if plain else [])]

    drawn = answer("preflight", "format-sessions", *words, stdin=json.dumps(found))["formatted"]

    assert drawn == boxes.active_sessions_box(listed, is_plain=plain)
    assert {boxes.columns_of(line) for line in drawn.split("\n")} == {boxes.BOX_COLUMNS}
    for session, record in zip(
        [one for one in listed if one.record.status == "stale"],
        found["stale_sessions"],
        strict=True,
    ):
        asked = answer("session_cleanup", "format-prompt", *words, stdin=json.dumps(record))
        assert asked["prompt"] == boxes.stale_session_box(session, is_plain=plain)
        assert asked["options"] == ["take_over", "wait", "ignore"]


def test_the_box_of_conflicts_is_the_same_from_script_and_core() -> None:
    scope = WorkScope("cc-v2-integration", PathSet(("src/**",)), ("bd-101",))
    expected = find_conflicts(board_of(folded("defect-3-bullets")), "", scope)

    found = json.dumps(detect("defect-3-bullets"))

    for plain in (False, True):
        words = ["--plain"] if plain else []
        drawn = answer("preflight", "format-conflicts", *words, stdin=found)["formatted"]
        assert drawn == boxes.conflicts_box(expected, is_plain=plain)


@pytest.mark.parametrize("name", FIXTURES)
def test_the_answer_is_as_its_schema_says_pf8(name: str) -> None:
    schema = json.loads((SKILL / "references" / "detect.schema.json").read_text("utf-8"))

    Draft202012Validator(schema).validate(detect(name))  # pyright: ignore[reportUnknownMemberType]


def test_the_same_input_at_the_same_time_gives_the_same_bytes_pf8() -> None:
    """The ninth defect: the documented call `--inbox-json -` was a usage error."""
    inbox = json.dumps(FIXTURES["layouts"]["messages"])
    calls: tuple[tuple[list[str], str], ...] = (
        (["--inbox-json", "-"], inbox),
        (["-"], inbox),
        ([], inbox),
        (["--inbox-json", inbox], ""),
        ([inbox], ""),
    )

    said = {
        run("preflight", "detect", "--now", str(NOW_S), *words, stdin=stdin).stdout
        for words, stdin in (*calls, *calls)
    }

    assert len(said) == 1
    assert '"count": 5' in said.pop()


@pytest.mark.parametrize(
    "words",
    [
        ("preflight", "detect", "{"),
        ("preflight", "detect", "3"),
        ("preflight", "detect", "[]", "--files", "../outside"),
        ("preflight", "detect", "[]", "--files", "x" * 600),
        ("preflight", "format-sessions", "3"),
        ("preflight", "format-conflicts", "[]"),
        ("session_cleanup", "find-stale", "[3]"),
        ("session_cleanup", "format-prompt", "[]"),
        ("session_identity", "parse", "BlueLake"),
        ("session_identity", "generate", "no name"),
    ],
)
def test_an_error_is_json_on_the_other_stream_pf8(words: tuple[str, ...]) -> None:
    done = run(*words)

    assert (done.returncode, done.stdout) == (1, "")
    assert list(json.loads(done.stderr)) == ["error"]


@pytest.mark.parametrize("script", RUN_SCRIPTS)
def test_misuse_has_its_own_exit_code_pf8(script: str) -> None:
    assert run(script).returncode == 2
    assert run(script, "--help").returncode == 0


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_a_script_is_short_and_needs_nothing_but_python_pf9(path: Path) -> None:
    text = path.read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    imports = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [x.name for x in node.names]
        )
    }

    assert len(text.splitlines()) < 200
    assert imports <= {*sys.stdlib_module_names, *(other.stem for other in SCRIPTS.glob("*.py"))}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]


@pytest.mark.parametrize("script", RUN_SCRIPTS)
def test_a_script_is_a_program_that_leaves_nothing_behind_pf9(script: str, tmp_path: Path) -> None:
    copies = shutil.copytree(SCRIPTS, tmp_path / "s", ignore=shutil.ignore_patterns("__pycache__"))
    path = copies / f"{script}.py"
    environment = {"PATH": os.environ["PATH"]}

    done = subprocess.run(
        [path, "--help"], env=environment, capture_output=True, check=False, timeout=60
    )

    assert path.read_text("utf-8").startswith("#!/usr/bin/env python3\n")
    assert done.returncode == 0
    assert not (copies / "__pycache__").exists()


def test_an_id_is_made_of_base_and_second_id1() -> None:
    assert answer("session_identity", "generate", "BlueLake", "--now", str(START_S)) == {
        "id": f"BlueLake-{START_S}",
        "display": "BlueLake (session 00:00)",
        "base_agent": "BlueLake",
        "created_ts": START_S,
    }


def test_two_zones_give_two_displays_of_one_id_id2() -> None:
    identity = f"BlueLake-{START_S}"

    for offset_s, shown in ((0, "00:00"), (37_800, "10:30"), (-3_600, "23:00")):
        words = ("format", identity, "--utc-offset", str(offset_s))
        said = answer("session_identity", *words)
        assert (said["id"], said["display"]) == (identity, f"BlueLake (session {shown})")
        assert said["display"] == display_name(identity, utc_offset_s=offset_s)


def test_an_id_is_split_at_its_last_hyphen_id3() -> None:
    assert answer("session_identity", "parse", f"Blue-Lake-{START_S}")["base_agent"] == "Blue-Lake"
    for text in ("BlueLake", "BlueLake-", "BlueLake-soon", "BlueLake-123", "-1735689600"):
        done = run("session_identity", "parse", "--", text)
        assert done.returncode == 1
        assert text in json.loads(done.stderr)["error"]


def test_an_id_that_is_taken_gives_way_to_the_next_second_and_then_to_milliseconds_id4() -> None:
    taken: list[str] = []
    for _ in range(6):
        words = ("generate", "BlueLake", "--now", f"{START_S}.25", "--taken", *taken)
        made = answer("session_identity", *words)["id"]
        assert made == choose_id("BlueLake", frozenset(taken), now_ms=START_S * 1_000 + 250)
        assert answer("session_identity", "parse", made)["base_agent"] == "BlueLake"
        taken.append(made)

    suffixes = [name.removeprefix("BlueLake-") for name in taken]
    assert suffixes == [*(str(START_S + at) for at in range(4)), "1735689600250", "1735689600251"]


def test_who_is_stale_is_found_among_records() -> None:
    found = detect("boundary-thirty-minutes")
    words = ("--now", str(NOW_S))
    stale = answer("session_cleanup", "find-stale", *words, stdin=json.dumps(found))
    nobody = answer("session_cleanup", "find-stale", *words, stdin="[]")
    later = answer(
        *("session_cleanup", "find-stale", "--threshold", "60", *words), stdin=json.dumps(found)
    )

    assert stale["stale_sessions"] == found["stale_sessions"]
    assert stale["stale_sessions"][0]["stale_minutes"] == 30
    assert (stale["count"], nobody["count"], later["count"]) == (1, 0, 0)


def test_a_summary_names_who_is_stale_and_why() -> None:
    times = json.dumps(detect("times"))

    said = answer("session_cleanup", "format-summary", "--now", str(NOW_S), stdin=times)

    assert said["summary"] == (
        "3 stale: Ahead (session 00:00) (clock_skew), BadTime (session 00:00) (invalid_timestamp),"
        " NoTime (session 00:00) (no_heartbeat)"
    )


def test_the_skill_says_when_preflight_runs_and_what_its_answers_mean() -> None:
    text = (SKILL / "SKILL.md").read_text("utf-8")
    commands = {path.stem: path.read_text("utf-8") for path in SKILL.glob("commands/*.md")}

    assert text.startswith("---\nname: orchestrator\ndescription: ")
    assert len(text.split("\n", 3)[2]) < 1_024
    for command in ("`ds`", "`bd ready`", "`bd show`", "`bd list`"):
        assert command in text
    assert sorted(commands) == ["conductor-implement", "conductor-orchestrate"]
    for body in commands.values():
        assert body.index("preflight") < body.index("Then")
        for sentence in ("interlock preflight --json", "`preflight`", "code 0", "4:", "5:"):
            assert sentence in " ".join(body.split())


def test_the_pages_of_the_skill_lead_to_each_other() -> None:
    for page in (SKILL / "SKILL.md", *SKILL.glob("references/*.md")):
        for target in [part.split(")")[0] for part in page.read_text("utf-8").split("](")[1:]]:
            assert (page.parent / target).is_file(), f"{page.name}: {target}"
