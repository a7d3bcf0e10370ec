"""Surgery on TOML texts: what was not operated on is the same to the byte."""

import tomllib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.workspace.files import toml_patch
from interlock.workspace.files.toml_patch import UnusableToml

NAME = "mcp_servers.interlock"
TABLE = f'[{NAME}]\ncommand = "/bin/sh"\nargs = ["/h/launch", "mcp"]\nenv = {{ A = "1" }}\n'
OURS: dict[str, Any] = {
    "command": "/bin/sh",
    "args": ["/h/launch", "mcp"],
    "env": {"A": "1"},
}

keys = st.sampled_from(("a", "b", '"ü"', "mcp_serversx"))
scalars = st.sampled_from(
    ("1", "true", '"x"', "'[x]'", "[1, 2]", "{ y = 1 }", '[\n  "z",\n  [1],\n]', '"""\n[z]\n"""')
)
headers = st.sampled_from(
    (
        "[tui]",
        "[ c.d ]",
        '["projects"."/p"]',
        "[[profiles]]",
        "[mcp_servers.other]",
        "[mcp_servers.interlock-like]",
        '[mcp_servers."inter.lock"]',
        "[other.mcp_servers.interlock]",
    )
)
comments = st.sampled_from(("", "  ", "# mine", f"# [{NAME}]", "\t# [x]"))


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file as somebody's editor or program would have left it."""
    lines: list[str] = []
    for header in [None, *draw(st.lists(headers, max_size=4, unique=True))]:
        lines += draw(st.lists(comments, max_size=2))
        lines += [header] if header else []
        for key in draw(st.lists(keys, max_size=3, unique=True)):
            lines += [f"{key} = {draw(scalars)}", *draw(st.lists(comments, max_size=1))]
    newline = draw(st.sampled_from(("\n", "\r\n")))
    text = "\n".join(lines).replace("\n", newline)
    return text + draw(st.sampled_from(("", newline, newline * 2, newline * 3)))


@given(texts())
@example("")
@example("a = 1")
@example("# mine")
@example("a = 1\r\n[b]")
@example("a = 1\r\n[b]\n")
@example(f'x = """\n[{NAME}]\n"""\n')
def test_what_is_appended_means_what_was_meant_and_taken_out_again_it_leaves_no_trace(
    text: str,
) -> None:
    before = tomllib.loads(text)

    longer = toml_patch.append_table(text, TABLE)

    assert longer is not None
    assert longer.startswith(text)
    found = tomllib.loads(longer)
    assert toml_patch.find_table(found, NAME) == OURS
    del found["mcp_servers"]["interlock"]
    if "mcp_servers" not in before:
        del found["mcp_servers"]
    assert found == before
    assert toml_patch.remove_table(longer, NAME) == text


@given(texts(), texts())
def test_what_comes_after_the_table_stays(text: str, more: str) -> None:
    """A client appends tables of its own, and people write about them above."""
    longer = toml_patch.append_table(text, TABLE)
    assert longer is not None
    further = f"{longer}\n# theirs\n[[theirs]]\n"
    try:
        tomllib.loads(further + more)
    except tomllib.TOMLDecodeError:
        more = ""  # what is in both
    further += more

    rest = toml_patch.remove_table(further, NAME)

    assert rest is not None
    assert rest.startswith(text)
    assert rest.endswith(f"# theirs\n[[theirs]]\n{more}")


CUT: dict[str, tuple[str, str | None]] = {
    "first of two": (f"{TABLE}\n[b]\nc = 1\n", "[b]\nc = 1\n"),
    "between two": (f"[a]\n\n{TABLE}\n[b]\n", "[a]\n[b]\n"),
    "with tables in it": (f"{TABLE}[{NAME}.env2]\nB = 1\n\n[b]\n", "[b]\n"),
    "tables in it alone": (f'[{NAME}.env]\nA = "1"\n[b]\n', "[b]\n"),
    "in two places": (f"{TABLE}[b]\n[{NAME}.tools]\nx = 1\n[c]\n", "[b]\n[c]\n"),
    "with space around its name": (f"[ {NAME} ]\nx = 1\n[b]\n", "[b]\n"),
    "with space before it": (f"  [{NAME}]\n  x = 1\n[b]\n", "[b]\n"),
    "crlf": (f"[a]\n\n{TABLE}\n[b]\n".replace("\n", "\r\n"), "[a]\r\n[b]\r\n"),
    "arrays over lines": (f"[{NAME}]\nargs = [\n  'x',\n]\n[b]\n", "[b]\n"),
    "in quotes": ('[mcp_servers."interlock"]\nx = 1\n', None),
    "in braces": ("mcp_servers = { interlock = { x = 1 } }\n", None),
    "in dotted keys": ("[mcp_servers]\ninterlock.x = 1\n", None),
    "partly in dotted keys": (f"mcp_servers.interlock.x = 1\n[{NAME}.env]\n", None),
}


@pytest.mark.parametrize("name", CUT)
def test_a_table_is_taken_out_or_left_alone(name: str) -> None:
    text, rest = CUT[name]

    found = toml_patch.remove_table(text, NAME)

    assert (found and without_blank_lines(found)) == rest


def without_blank_lines(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if line.strip())


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { }\n",
        "mcp_servers = 1\n",
        "[[mcp_servers]]\n",
        "[mcp_servers]\ninterlock = 1\n",
        TABLE,
        "mcp_servers.interlock.x = 1\n",
    ],
)
def test_a_table_that_the_text_cannot_have_is_not_appended(text: str) -> None:
    assert toml_patch.append_table(text, TABLE) is None


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a = 1\na = 2\n", "is not TOML: "),
        (b"a = ", "is not TOML: "),
        (b"\xef\xbb\xbfa = 1", "is not TOML: "),
        (b'a = "\xff"', "is not UTF-8"),
        (b"a = " + b"[" * 5_000, "is not TOML: "),
    ],
)
def test_a_file_that_is_not_toml_is_told(content: bytes, what: str) -> None:
    found = toml_patch.read(content)

    assert isinstance(found, UnusableToml)
    assert found.what.startswith(what)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"a": {"b": {"c": 1}}}, {"c": 1}),
        ({"a": {"b": 2}}, 2),
        ({"a": {}}, None),
        ({"a": [1]}, None),
        ({}, None),
    ],
)
def test_a_table_is_found_by_its_dotted_name(values: dict[str, Any], found: object) -> None:
    assert toml_patch.find_table(values, "a.b") == found
