"""Files of agent clients as people have them: what an install must leave alone."""

import json
from typing import Any

from interlock.agents.hosts import claude_code
from interlock.agents.hosts.host import Host

BOM = "\ufeff"

_THEIRS: dict[str, Any] = {"type": "command", "command": "/usr/bin/notify-send done"}
_GROUP: dict[str, Any] = {"matcher": "Bash", "hooks": [_THEIRS]}
_EVENTS = ("PreToolUse", "PostToolUse", "Stop", "SessionStart", "UserPromptSubmit", "SessionEnd")
_BUSY: dict[str, Any] = {
    "permissions": {"allow": ["Bash(npm run *)"], "deny": ["Read(./.env)"]},
    "hooks": {event: [_GROUP, {"hooks": [_THEIRS, _THEIRS]}] for event in _EVENTS},
    "model": "opus",
}
_LOOKALIKES = [
    "echo interlock hook --host claude-code",
    "/bin/sh /home/me/launch hook claude-code pre-tool",
    'L=/h/launch; /bin/sh "$L" hook claude-codex pre-tool; exit 0',
    'L=/h/launch; [ -r "$L" ] && exec /bin/sh "$L" hook opencode pre-tool; exit 0',
    '/bin/sh "/h/launcher" hook claude-code stop; exit 0',
    "",
]
_DEEP = '{"a": ' * 200 + "0" + "}" * 200


def _with(value: dict[str, Any], **style: Any) -> str:
    return json.dumps(value, **style)


SETTINGS: dict[str, str] = {
    "empty": "",
    "bom alone": BOM,
    "object": "{}",
    "minified": '{"model":"opus","env":{"A":"1"}}',
    "two spaces": _with(_BUSY, indent=2) + "\n",
    "four spaces": _with(_BUSY, indent=4) + "\n",
    "tabs": _with(_BUSY, indent="\t") + "\n",
    "crlf": (_with(_BUSY, indent=2) + "\n").replace("\n", "\r\n"),
    "bom and crlf": BOM + _with(_BUSY, indent=2).replace("\n", "\r\n"),
    "mixed line ends": '{\r\n  "a": 1,\n  "b": 2\r\n}\n',
    "commas first": '{ "a": 1\n, "hooks": { "Stop": [ ] }\n}',
    "variables": '{\n  "env": {\n    "A": "1"\n  },\n  "model": "opus"\n}\n',
    "variables empty": '{"env": {}}',
    "events empty": '{\n  "hooks": {"PreToolUse": [], "Stop": []}\n}\n',
    "events empty over lines": '{\n  "hooks": {\n    "PreToolUse": [\n    ]\n  }\n}\n',
    "every event taken": _with(
        {"hooks": {e: [_GROUP] for e in (*_EVENTS, "PreCompact")}}, indent=2
    ),
    "unknown events": _with({"hooks": {"FileChanged": [_GROUP], "Soon": []}}, indent=2),
    "lookalikes": _with(
        {"hooks": {"PreToolUse": [{"hooks": [{"command": text} for text in _LOOKALIKES]}]}},
        indent=2,
    ),
    "odd hooks": _with({"hooks": {"Stop": [None, 1, "x", {}, {"hooks": 3}, {"hooks": [7]}]}}),
    "unicode": '{\n  "name": "Zoë 🔒", "key ü": "\\u00fc\\ud83d\\ude00\\/"\n}\n',
    "escaped key": '{\n  "\\u0068ooks": {"\\u0053top": []}\n}\n',
    "deep": f'{{\n  "deep": {_DEEP}\n}}\n',
    "keys twice": '{"hooks": {"Stop": []}, "hooks": {"Stop": [], "Stop": [1]}}',
    "large": _with({"history": [{"n": n, "text": "x" * 90} for n in range(10_000)]}, indent=1),
    "numbers": '{"a": 1.50, "b": 1E5, "c": -0, "d": 123456789012345678901234567890}',
    "our words in a text": '{"note": "interlock hook --host claude-code --event pre-tool"}',
    "line separators": '{"a": "\u2028\u0085"}',
}
"""Settings into which hooks can be put."""

SERVERS: dict[str, str] = {
    "empty": "",
    "no servers": '{\n  "numStartups": 3\n}\n',
    "another server": _with({"mcpServers": {"tiny": {"command": "tiny", "args": []}}}, indent=2),
    "tabs": _with({"mcpServers": {"tiny": {"command": "tiny"}}, "z": 1}, indent="\t") + "\r\n",
    "one tight line": '{"mcpServers":{"interlock-like":{"command":"x"}},"projects":{}}',
    "of one project": '{\n "projects": {"/p": {"mcpServers": {"interlock": {"command": "x"}}}}\n}',
}
"""Files into which a server can be put."""

REFUSED: dict[str, str | bytes] = {
    "array": "[]",
    "cut off": '{"hooks": {',
    "comment": '{\n  // mine\n  "hooks": {}\n}\n',
    "not utf-8": b'{"a": "\xff"}',
    "too deep": '{"a": ' * 20_000,
    "hooks are an array": '{"hooks": []}',
    "variables are an array": '{"env": []}',
    "an event is an object": '{"hooks": {"Stop": {}}}',
}
"""Settings that must be refused and left alone."""


def settings_for(host: Host) -> dict[str, str]:
    """The same settings with the words of another host: its events, and its name."""
    return {name: _translate(text, host) for name, text in SETTINGS.items()}


def refused_for(host: Host) -> dict[str, str | bytes]:
    """What must be refused of the same, where the host has nothing but hooks in its settings."""
    return {
        name: _translate(text, host) if isinstance(text, str) else text
        for name, text in REFUSED.items()
        if not name.startswith("variables ")
    }


def servers_for(key: str) -> dict[str, str]:
    """The same files for a host that has its servers under another key."""
    return {name: text.replace('"mcpServers"', f'"{key}"') for name, text in SERVERS.items()}


def _translate(text: str, host: Host) -> str:
    for event in claude_code.HOST.events:
        native = host.native_event(event.name) or event.native
        text = text.replace(f'"{event.native}"', f'"{native}"')
    return text.replace(" claude-code ", f" {host.name} ")


_OTHER = '[mcp_servers.other]\ncommand = "other"\nargs = ["interlock", "/h/launch"]\n'
TOML: dict[str, str] = {
    "empty": "",
    "comment without a newline": "# mine",
    "no newline at the end": 'model = "gpt"',
    "crlf": 'model = "gpt"\r\n\r\n[tui]\r\nx = 1\r\n',
    "mixed line ends": 'model = "gpt"\r\n[tui]\nx = 1\n',
    "other tables": '# top\n[tui]\nx = 1 # one\n\n[[profiles]]\nname = "a"\n[[profiles]]\n',
    "comment at the end": '[projects."/p"]\ntrust_level = "trusted"\n\n# the end\n',
    "another server": _OTHER,
    "servers without one": "[mcp_servers]\n",
    "a server with a longer name": _OTHER.replace("other", "interlock-like"),
    "our header in a text": 'x = """\n[mcp_servers.interlock]\n"""\n',
    "unicode": 'name = "Zoë 🔒"\n["ключ"]\n"ü" = "\\u00fc"\n',
}
"""Settings of Codex into which a server can be put."""

TOML_REFUSED: dict[str, str | bytes] = {
    "not TOML": "model = ",
    "a key twice": "a = 1\na = 2\n",
    "not utf-8": b'a = "\xff"',
    "bom": f"{BOM}a = 1\n",
    "servers in braces": "mcp_servers = { }\n",
    "servers are a number": "mcp_servers = 1\n",
    "servers are an array": "[[mcp_servers]]\n",
}
"""Those that must be refused and left alone."""

TOML_TAKEN: dict[str, str] = {
    "a program": '[mcp_servers.interlock]\ncommand = "/mine/interlock"\nargs = ["mcp"]\n',
    "an address": '[mcp_servers.interlock]\nurl = "http://127.0.0.1:3100/mcp"\n',
    "in braces": 'mcp_servers = { interlock = { command = "mine" } }\n',
    "in dotted keys": 'mcp_servers.interlock.command = "mine"\n',
    "with a table in it": f'{_OTHER}[mcp_servers.interlock.env]\nA = "1"\n',
}
"""Those with a server of somebody else under our name, which must stay."""
