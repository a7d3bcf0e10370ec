"""What the fast hook takes for harmless in a command, a path or a payload, the core does too."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlock.app.context import App
from interlock.core.gate import paths
from interlock.core.gate.decide import decide
from interlock.core.gate.secret_files import SECRETS
from interlock.core.gate.state import GateRow, Policy
from interlock.hooks import fast
from interlock.hooks.hook_result import HookResult
from tests.core.gate.host_calls import tool_call
from tests.core.gate.test_shell import COMMANDS, PREFIXES, SHELLS
from tests.effort import scale
from tests.hooks.recordings import payload_names, recorded
from tests.hooks.scene import HOST, NOTED, PLAIN_HOSTS, Scene

pytestmark = pytest.mark.slow

ROW = GateRow("ses_1", "coding", is_started=True)
HOMES = ("/home/u/.local/share/interlock", "/data/il", "/srv/.git/x/Interlock", "/w")
HOMES_ODD = ("/home//u/x", "/home/u/x/", "home/u", "", "/", "/home/./u", "/home/../u")
CWDS = (
    *(
        "/work/project",
        "/home/u/.local/share",
        "/home/u/.local/share/interlock/spool",
        "/",
        "/data",
    ),
    *("/w", "/w/x", "/work/.git", "/work/.CLAUDE", "/work/../work", "/work//.", "/a\\b", "/ü", ""),
)


def is_allowed(tool: str, given: dict[str, Any], cwd: str, home: str) -> bool:
    """By the core, in coding, in a project without rules of its own."""
    return decide(ROW, Policy(), tool_call(tool, given, cwd), home=home).answer == "allow"


def agrees(command: str, cwd: str = CWDS[0], home: str = HOMES[0]) -> bool:
    """Whether the fast hook lets a command pass; then the core does."""
    is_free = fast.is_free_command(command, cwd, home)
    if is_free:
        assert is_allowed("Bash", {"command": command}, cwd, home), (command, cwd, home)
    return is_free


@pytest.mark.invariant("fast-allows-less")
def test_every_command_of_the_table_is_allowed_by_the_core_if_here() -> None:
    places = [(cwd, home) for cwd in CWDS[:4] for home in HOMES[:2]]
    passed = [agrees(command, *place) for command in COMMANDS for place in places]

    assert len(COMMANDS) > 800
    assert any(passed)


@pytest.mark.parametrize(
    "command",
    [
        "ls -la src",
        "git status && git diff HEAD~2..HEAD -- 'src/a b.py'",
        'git commit -m "A change, with words: (and) more; #7"',
        ".venv/bin/python -m pytest -q tests/x.py::test_y | tail -5",
        "cd sub && npm run build > out.log 2>&1",
        "rm -rf build",
    ],
)
def test_common_commands_are_not_handed_over(command: str) -> None:
    assert agrees(command)


DENIED = (
    *("interlock mode disabled", "interlock approvals grant 1", "/usr/bin/interlock keys rotate"),
    *("python3 -m interlock trust", "uvx interlock install claude-code", "INTERLOCK hook"),
    *("echo x > .git/hooks/pre-commit", "cd .git && touch hooks/a", "git -C .git mv a hooks/a"),
    *(
        "tee .claude/settings.json",
        "sed -i s/a/b/ .mcp.json",
        "sed -n 'w .mcp.json' a",
        "rm .MCP.json",
    ),
    *(f"touch {end}" for end in paths.ALWAYS_PROTECTED),
    *(f"touch {HOMES[0]}/gate-off", "cd /home/u/.local && touch share/interlock/gate.db"),
    *("cat /data/il/secret", "cd ../il && cat keyring", "grep -r x il", "cp agent-secret x"),
    *("touch /data/il/x", "touch ../il/x", "touch il", "cd /srv/.git/x && rm -r interlock", "rm x"),
)
"""Commands that the core denies in coding, at least in some directory and with some home."""


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("command", DENIED)
def test_no_command_that_the_core_denies_passes(command: str) -> None:
    for cwd in CWDS:
        for home in HOMES:
            agrees(command, cwd, home)


SPELLINGS = ("''", '""', "\\", "\\\n", "$''", '$""', "$x", "``", "{,}", "*", "./", "../", "\n", " ")
"""What may stand within a word without changing what it means, and what may not."""


@pytest.mark.slow
@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("piece", SPELLINGS)
def test_no_respelling_of_a_command_that_the_core_denies_passes(piece: str) -> None:
    for command in DENIED:
        for place in range(len(command) + 1):
            text = command[:place] + piece + command[place:]
            for wrapped in (text, f'bash -c "{text}"', f"sudo {text}", text.upper()):
                for cwd in ("/work/project", "/data", "/w"):
                    agrees(wrapped, cwd, HOMES[1] if cwd == "/data" else HOMES[0])


@st.composite
def commands(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(DENIED) | st.sampled_from(COMMANDS))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(SPELLINGS)) + text[place:]
    for wrapper in draw(st.lists(st.sampled_from([*PREFIXES, *SHELLS]), max_size=2)):
        quoted = text.replace("'", '"')
        text = wrapper + (text if wrapper in PREFIXES else f"'{quoted}'")
    joined = draw(
        st.sampled_from(["", "cd /w; ", "cd .. && ", "ls | ", "x=1 ", "cd .git; ", "cd il\n"])
    )
    return joined + text


@pytest.mark.invariant("fast-allows-less")
@settings(max_examples=scale(300))
@given(commands(), st.sampled_from(CWDS), st.sampled_from(HOMES))
def test_no_spelling_of_a_command_passes_that_the_core_denies(
    command: str, cwd: str, home: str
) -> None:
    agrees(command, cwd, home)


def agrees_on(path: str, cwd: str, home: str) -> bool:
    """Whether the fast hook lets an edit pass, whatever names its file; then the core does."""
    keys = ("file_path", "path", "notebook_path", "filePath", "absolute_path", "target_file")
    edits: list[dict[str, object]] = [{"content": "x", key: path} for key in keys]
    free = [edit for edit in edits if fast.is_free_edit(edit, home)]
    for edit in free:
        assert is_allowed("Write", edit, cwd, home), (path, cwd, home)
    return bool(free)


RESPELLED = (
    *(("", ""), ("/", "//"), ("/", "/./"), ("/", "/x/../"), ("/", "\\"), (".", "./."), ("/", "/ ")),
    *(("k", "\u212a"), ("s", "\u017f"), ("i", "\u0130"), ("g", "\uff47"), (".", "\u2024")),
)


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize(("old", "new"), RESPELLED)
def test_no_respelling_of_a_protected_path_passes(old: str, new: str) -> None:
    for home in HOMES:
        for path in (*(f"/work/{end}" for end in paths.ALWAYS_PROTECTED), home, f"{home}/gate.db"):
            for case in (path, path.upper(), path.title(), path.casefold()):
                inner = f"{case[0]}{case[1:].replace(old, new)}" if old else case
                for text in (inner, case.replace(old, new, 1), f"{case}{new}x", f"{case}/"):
                    agrees_on(text, "/work", home)


PARTS = [part for end in (*paths.ALWAYS_PROTECTED, *HOMES, *SECRETS) for part in end.split("/")]
SEPARATORS = st.sampled_from(["/", "//", "/./", "/../", "/x/../", "\\"])
PART = st.sampled_from(
    [*PARTS, "..", ".", "", "a", "x y", ".gitignore", ".mcp.json\u212a", "~", "C:"]
)


NAMED = [
    *(f"<HOME>{end}" for end in ("", "/", "/x/..", *(f"/{name}" for name in SECRETS))),
    *(*SECRETS, *(name.upper() for name in SECRETS), "il/secret", "w", "\u017fecret", "~/il"),
]


@st.composite
def written_paths(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["", "/", "/work/", "~/", "C:/", *(f"{home}/" for home in HOMES)]))
    for part in draw(st.lists(PART, max_size=6)):
        spelled = draw(st.sampled_from([part, part.upper(), part.replace("k", "\u212a")]))
        text += spelled + draw(SEPARATORS)
    return text + draw(st.sampled_from(["", "a.py", ".", ".."]))


@pytest.mark.invariant("fast-allows-less")
@settings(max_examples=scale(300))
@given(written_paths() | st.text(), st.sampled_from(CWDS), st.sampled_from(HOMES))
def test_no_spelling_of_a_path_passes_that_the_core_protects(
    path: str, cwd: str, home: str
) -> None:
    agrees_on(path, cwd, home)


@pytest.mark.invariant("fast-allows-less")
@settings(max_examples=scale(300))
@given(
    st.lists(written_paths() | st.text() | st.sampled_from(NAMED), max_size=3),
    st.sampled_from(["Read", "Grep", "Glob", "mcp__files__read", "Brandnew"]),
    st.sampled_from(CWDS),
    st.sampled_from([*HOMES, '/it\'s/a "home"', "/x/\u200b", "/x/\u1e9e", "/x/a\\b"]),
)
def test_no_spelling_of_a_secret_passes_that_the_core_keeps(
    texts: list[str], tool: str, cwd: str, home: str
) -> None:
    texts = [text.replace("<HOME>", home) for text in texts]
    look: dict[str, object] = {"path": texts[:1], **dict(zip("ab", texts[1:], strict=False))}
    is_unlisted = tool not in ("Read", "Grep", "Glob")  # it may write what it names
    is_free = not (is_unlisted and fast.names_marker(repr(look)))
    if is_free and fast.is_free_read(look, cwd, home, may_write=is_unlisted):
        assert is_allowed(tool, look, cwd, home), (look, cwd, home)


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("written", HOMES_ODD)
def test_a_data_home_that_is_not_written_plainly_is_for_the_full_hook(
    scene: Scene, written: str
) -> None:
    content = scene.payload("Read")
    assert fast.run(HOST, "pre-tool", str(scene.home), content)

    assert not fast.run(HOST, "pre-tool", written, content)


def test_common_paths_are_not_handed_over() -> None:
    for path in ("/work/a.py", "/work/interlock/src/x y.py", "/w/.env", "/work/.vscode/x.json"):
        assert fast.is_free_edit({"file_path": path}, HOMES[0])


PAYLOADS: dict[str, bytes] = {
    "nothing": b"",
    "a blank": b" ",
    "half": b"{",
    "null": b"null",
    "a list": b"[]",
    "bytes": b"\xff\xfe\x00",
    "not UTF-8": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": "\xff"}',
    "a mark before": b'\xef\xbb\xbf{"cwd": "<PROJECT>", "tool_name": "Read"}',
    "blanks around": b'\n {"cwd": "<PROJECT>", "tool_name": "Read"} \r\n\t',
    "more after": b'{"cwd": "<PROJECT>", "tool_name": "Read"} {}',
    "a NUL after": b'{"cwd": "<PROJECT>", "tool_name": "Read"}\0',
    "cwd twice": b'{"cwd": "/", "cwd": "<PROJECT>", "tool_name": "Write"}',
    "tool twice": b'{"cwd": "<PROJECT>", "tool_name": "Read", "tool_name": "Write"}',
    "tool twice, escaped": b'{"cwd": "<PROJECT>", "tool_name": "Read", "\\u0074ool_name": "Write"}',
    "tool twice, first wrong": b'{"cwd": "<PROJECT>", "tool_name": 5, "tool_name": "Read"}',
    "something twice": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": {"y": 1, "y": 2}}',
    "no tool": b'{"cwd": "<PROJECT>"}',
    "a tool that is no text": b'{"cwd": "<PROJECT>", "tool_name": ["Read"]}',
    "a source that is no text": b'{"cwd": "<PROJECT>", "tool_name": "Read", "source": 5}',
    "an agent that is no text": b'{"cwd": "<PROJECT>", "tool_name": "Read", "agent_id": 5}',
    "a type that is no text": b'{"cwd": "<PROJECT>", "tool_name": "Read", "agent_type": {}}',
    "an odd transcript": b'{"cwd": "<PROJECT>", "tool_name": "Read", "transcript_path": 1}',
    "no transcript": b'{"cwd": "<PROJECT>", "tool_name": "Read", "transcript_path": null}',
    "a flag that is none": b'{"cwd": "<PROJECT>", "tool_name": "Read", "stop_hook_active": 1}',
    "a NUL in the tool": b'{"cwd": "<PROJECT>", "tool_name": "Read\\u0000"}',
    "a NUL in cwd": b'{"cwd": "<PROJECT>\\u0000", "tool_name": "Read"}',
    "a Windows cwd": b'{"cwd": "C:\\\\work", "tool_name": "Read"}',
    "half a surrogate": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": "\\ud800"}',
    "a surrogate in cwd": b'{"cwd": "<PROJECT>\\udcff", "tool_name": "Read"}',
    "a wrong escape": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": "\\x"}',
    "a control character": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": "a\nb"}',
    "NaN": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": NaN}',
    "infinity": b'{"cwd": "<PROJECT>", "tool_name": "Read", "tool_input": -Infinity}',
    "too large": b'{"cwd": "<PROJECT>", "tool_name": "Read", "tool_input": 1e999}',
    "large": b'{"cwd": "<PROJECT>", "tool_name": "Read", "tool_input": ' + b"9" * 5000 + b"}",
    "odd numbers": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": 01}',
    "a trailing comma": b'{"cwd": "<PROJECT>", "tool_name": "Read",}',
    "a comment": b'{"cwd": "<PROJECT>", "tool_name": "Read"} // ok',
    "deep": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    "a megabyte": b'{"cwd": "<PROJECT>", "tool_name": "Read", "x": "' + b"x" * 10**6 + b'"}',
    "too many bytes": b'{"cwd": "<PROJECT>", "tool_name": "Read"}' + b" " * (8 * 1024 * 1024),
    "an event of another": b'{"cwd": "<PROJECT>", "tool_name": "Read", "hook_event_name": null}',
}


@pytest.mark.invariant("fast-allows-less")
@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_that_is_odd_has_the_answer_of_the_full_hook(scene: Scene, name: str) -> None:
    content = PAYLOADS[name].replace(b"<PROJECT>", str(scene.project).encode())
    scene.goes_to("coding")

    scene.agrees(content)

    for event in NOTED:
        if scene.is_fast(content, event):
            assert scene.full(content, event) == HookResult()


@pytest.mark.parametrize("name", ["blanks around", "a megabyte"])
def test_a_payload_that_is_only_large_is_read(scene: Scene, name: str) -> None:
    content = PAYLOADS[name].replace(b"<PROJECT>", str(scene.project).encode()).lstrip()

    assert scene.agrees(content)


VALUES = st.sampled_from(
    [
        *(
            '"<PROJECT>"',
            '"/"',
            '""',
            '"Read"',
            '"Write"',
            '"Bash"',
            '"host-1"',
            "null",
            "true",
            "0",
        ),
        *("{}", "[]", "-1.5", "1e5", "NaN", '"\\ud83d\\ude00"', '"\\u0000"', '"ü"', "[[{}]]", "x"),
        *(
            '{"file_path": "<PROJECT>/a"}',
            '{"command": "ls"}',
            '{"command": "interlock mode coding"}',
        ),
        *('{"file_path": "<PROJECT>/.mcp.json"}', '{"file_path": "/a", "file_path": ".mcp.json"}'),
    ]
)
KEYS = st.sampled_from(["session_id", "cwd", "tool_name", "tool_input", "source", "x", "cw\\u0064"])
USUAL = '"session_id": "host-1", "cwd": "<PROJECT>", "tool_name": "Write"'


@pytest.mark.invariant("fast-allows-less")
@settings(max_examples=scale(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(KEYS, VALUES), max_size=5),
    st.sampled_from(["{", f"{{{USUAL}, ", "", "[", " {"]),
    st.sampled_from(["}", "", "}}", "}\n", ",}"]),
)
@example([("tool_name", '"Read"')], "{", "}")
def test_any_payload_has_the_answer_of_the_full_hook(
    scene: Scene, fields: list[tuple[str, str]], opening: str, closing: str
) -> None:
    scene.goes_to("coding")
    inner = ", ".join(f'"{key}": {value}' for key, value in fields)
    text = f"{opening}{inner}{closing}".replace("<PROJECT>", str(scene.project))

    scene.agrees(text.encode())


FOR_THE_FULL_HOOK = (
    *("codex-PreToolUse-apply_patch", "codex-PreToolUse-Bash"),
    *("gemini-BeforeTool-write_file-in-plan-mode", "opencode-pre-tool-write-plan"),
)
"""A patch, a command with a variable, and paths that are not plain."""


@pytest.mark.parametrize("host", PLAIN_HOSTS)
def test_what_a_client_really_sends_is_read(
    app: App, home: Path, tmp_path: Path, host: str
) -> None:
    scene = Scene(app, home, tmp_path, host)
    scene.goes_to("coding")
    for event in ("post-tool", "session-end"):
        scene.full(scene.payload("Anything"), event)  # it makes the spool
    scene.full(scene.payload(scene.host.tools["shell"].split()[0], {"command": "ls"}), "post-tool")
    seen: set[str] = set()
    for name, event in payload_names(host).items():
        payload = recorded(name, scene.project, session_id="host-1")
        if event not in fast.EVENTS or name in FOR_THE_FULL_HOOK:
            continue
        if scene.host.reports(payload.get("tool_name", "")):
            assert not scene.is_fast(json.dumps(payload).encode(), event) or event == "pre-tool"
            continue  # the session records it
        seen.add(event)
        assert scene.is_fast(json.dumps(payload).encode(), event), name
    assert seen == {event.name for event in scene.host.events} & set(fast.EVENTS)
