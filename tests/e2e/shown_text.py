"""What a model was shown of Interlock, taken from what a client asked it, for a person to read.

What varies (ids, tokens, times, paths) has a name: the first session is `ses_1`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from textwrap import indent
from typing import Any, cast

from interlock.mcp.tools import TOOLS

MARKS = re.compile(
    r"Interlock|(?<![./])\binterlock \w|\bct1[a-z0-9]{45}|News, told once"
    r"|\b(?:gate|ses|run|apr)_[0-9a-f]{8}|\bNot finished: "
)
CONTEXT = re.compile(
    r"(?:^|: |>)(## Interlock session.*?)(?=\n# |\n\nToday's date|</hook_context>|\Z)", re.DOTALL
)
INSTRUCTIONS = re.compile(r"^ *Interlock records your work.*?^ *An error says [^\n]*", re.M | re.S)
SCHEMAS = ("input_schema", "parameters", "parametersJsonSchema")
NAMES = {tool.name: tool for tool in TOOLS}
SUMS_UP = re.compile(r"Summary \(max 80 chars\)|Create a new anchored summary")
"""The requests in which a client has its own conversation summed up."""
LONG = 4_000
"""Texts that are longer are mostly the client's own."""
FIXED = {
    r"\bct1[0-9a-z]{40,}": "TOKEN",
    r"\bses_[0-9a-zA-Z]{26}\b": "ID",
    r"\b20\d\d-\d\d-\d\d(T[\d:.]+(Z|\+00:00)| \d\d:\d\d( UTC)?)?": "DATE",
    r"sha256:[0-9a-f]{64}": "sha256:DIGEST",
    r"Wall time: [\d.]+ seconds": "Wall time: N seconds",
    r"\bfor another \d+ min\b": "for another N min",
    r"\b\d+ s ago\b": "N s ago",
    r"\(session \d\d:\d\d\)": "(session TIME)",
    r"\b\w+(?= \(session TIME\))|\b\w+-\d{10}\b": "USER",
}
NAMED = re.compile(r"\b(?P<kind>[a-z]{3,6})_[0-9a-f]{8,32}\b|\b(?P<il>il)-[0-9a-z]{4}\b")


class Reader:
    """Everything that one model has read, in order."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places
        self._names: dict[str, str] = {}
        self._counts = Counter[str]()
        self._read: set[str] = set()
        self._parts: list[str] = []
        self.tools: dict[str, str] = {}
        """What each of our tools says of itself and its arguments."""

    def read(self, moment: str, requests: list[dict[str, Any]]) -> None:
        """Add what is new in these requests."""
        self._parts.append(f"### {moment}\n")
        first = len(self._parts)
        for request in requests:
            body = request.get("body", {})
            self.tools |= dict(_our_tools(body))
            for text in (*_instructions_of_tools(body), *_texts(body)):
                for found in _ours(text):
                    shown = self._normalised(_readable(found))
                    if shown not in self._read:
                        self._read.add(shown)
                        # When these come depends on how soon the server is connected.
                        is_first = shown.startswith("Interlock records your work")
                        place = first if is_first else len(self._parts)
                        self._parts.insert(place, indent(shown, "    ") + "\n")

    def text(self) -> str:
        return "\n".join(self._parts)

    def latest(self) -> str:
        """The text of the latest moment."""
        begin = max(i for i, part in enumerate(self._parts) if part.startswith("### "))
        return "\n".join(self._parts[begin:])

    def _normalised(self, text: str) -> str:
        for path, name in self._places.items():
            text = text.replace(path, name)
        for pattern, name in FIXED.items():
            text = re.sub(pattern, name, text)
        return NAMED.sub(self._name, text)

    def _name(self, match: re.Match[str]) -> str:
        if match[0] not in self._names:
            kind = match["kind"] or "il"
            self._counts[kind] += 1
            self._names[match[0]] = f"{kind}_{self._counts[kind]}"
        return self._names[match[0]]


def _our_tools(part: object) -> Iterator[tuple[str, str]]:
    """The tools of ours that are listed in a part of a request, in the form of any client."""
    if isinstance(part, list):
        for item in cast("list[object]", part):
            yield from _our_tools(item)
    elif isinstance(part, dict):
        tool = cast("dict[str, Any]", part)
        schema = next((tool[key] for key in SCHEMAS if key in tool), None)
        name = re.sub(r"^(mcp__?)?interlock_+", "", str(tool.get("name")))
        if isinstance(schema, dict) and name in NAMES:
            # Clients sort the arguments, and add some of their own.
            arguments = sorted(cast("dict[str, Any]", schema).get("properties", {}).items())
            own = NAMES[name].listing["inputSchema"]["properties"]
            about = (
                f"- {key}: {sub['description']}"
                for key, sub in arguments
                if key in own and "description" in sub
            )
            text = "\n".join((f"{name}: {tool['description']}", *about))
            yield name, text.replace("…", "...")  # as Claude Code does
        for value in tool.values():
            yield from _our_tools(value)


def _instructions_of_tools(body: dict[str, Any]) -> Iterator[str]:
    """Our instructions, where a client has put them into the description of a tool of its own."""
    for tool in body.get("tools", ()):
        if match := INSTRUCTIONS.search(str(tool.get("description"))):
            yield match[0]


def _texts(part: object) -> Iterator[str]:
    """The texts of a request that the model did not write itself."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for item in cast("list[object]", part):
            yield from _texts(item)
    elif isinstance(part, dict):
        members = cast("dict[str, object]", part)
        is_own = members.get("role") in ("assistant", "model") or members.get("type") in (
            *("function_call", "tool_search_call", "tool_search_output", "custom_tool_call"),
        )
        for name, value in members.items() if not is_own else ():
            if name not in ("tools", "type", "name", "namespace", "metadata", "prompt_cache_key"):
                yield from _texts(value)


def _ours(text: str) -> Iterator[str]:
    if not MARKS.search(text) or SUMS_UP.search(text):
        return
    for match in INSTRUCTIONS.finditer(text):
        yield re.sub(r"(?m)^ +", "", match[0])
    text = INSTRUCTIONS.sub("", text)
    contexts = [match[1] for match in CONTEXT.finditer(text)]
    yield from contexts
    if not contexts and len(text) < LONG and MARKS.search(text):
        yield text


def _readable(text: str) -> str:
    """A structured answer as lines; other texts as they are."""
    head, brace, rest = text.partition("{")
    if not brace or (head and not head.endswith("Output:\n")):
        return text.strip()
    try:
        return f"{head}{_lines(json.loads(brace + rest))}".strip()
    except ValueError:
        return text.strip()


def _lines(value: object) -> str:
    if isinstance(value, dict):
        return "".join(
            f"\n{name}: {_lines(member)}"
            if not isinstance(member, dict | list)
            else f"\n{name}:{indent(_lines(cast('object', member)), '  ')}"
            for name, member in cast("dict[str, object]", value).items()
        )
    if isinstance(value, list):
        return "".join(f"\n- {_lines(item).strip()}" for item in cast("list[object]", value))
    return str(value)
