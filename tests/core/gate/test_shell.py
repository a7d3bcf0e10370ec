"""What a shell command would do: by a table of commands, and by properties that hold for all."""

import shlex
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.gate.command.judgement import RANK
from interlock.core.gate.command.programs import READERS, VERBS, WRITERS
from interlock.core.gate.shell import BYTES_MAX, Command, Effect, analyse

TABLE: dict[str, dict[Effect, list[str]]] = tomllib.loads(
    Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
)
ROWS = [
    (theme, effect, command)
    for theme, effects in TABLE.items()
    for effect, commands in effects.items()
    for command in commands
]
COMMANDS = [command for _, _, command in ROWS]
SIMPLE = [command for command in COMMANDS if analyse(command).is_simple]


def only(text: str) -> Command:
    [command] = analyse(text).commands
    return command


@pytest.mark.parametrize(("theme", "effect", "command"), ROWS)
def test_a_command_has_the_effect_that_the_table_says(
    theme: str, effect: Effect, command: str
) -> None:
    analysis = analyse(command)

    assert analysis.effect == effect, f"{theme}: {analysis.reason}"
    assert analysis.reason


def test_nothing_that_hides_reads() -> None:
    assert set(TABLE["evasions"]) == {"writes", "unknown"}
    assert sum(map(len, TABLE["evasions"].values())) >= 100


def test_the_effect_is_that_of_the_worst_command_and_so_is_the_reason() -> None:
    analysis = analyse("ls; python3 -c 1; rm a; echo b > c")

    assert [command.effect for command in analysis.commands] == [
        "reads",
        "unknown",
        "writes",
        "writes",
    ]
    assert (analysis.effect, analysis.reason) == ("writes", "`rm` writes")
    assert analyse("ls; python3 -c 1").reason == "`python3 -c` may do anything"
    assert analyse("").reason == "nothing is run"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("ls -l 'a b'", Command("ls", ("-l", "a b"), "reads", "`ls` only reads")),
        ("echo x > a", Command("echo", ("x",), "writes", "redirection to `a`", ("a",))),
        ("/bin/rm a", Command("rm", ("a",), "writes", "`rm` writes", ("a",))),
        ("sudo env x=1 rm a", Command("rm", ("a",), "writes", "`rm` writes", ("a",))),
        ("bash -c 'rm a'", Command("rm", ("a",), "writes", "`rm` writes", ("a",))),
        ("$x a", Command("", ("a",), "unknown", "the program is not literal: `$x`")),
        ("echo 'a", Command("", (), "unknown", "it cannot be read: a single quote is not closed")),
        ("x=1", Command("", (), "reads", "no program is run")),
        ("cat $x *.py", Command("cat", ("$x", "*.py"), "reads", "`cat` only reads")),
        (
            "PATH=/x ls",
            Command("ls", (), "unknown", "`PATH` is set, which may change what is run"),
        ),
        ("./ls a", Command("ls", ("a",), "unknown", "`./ls` is no program of the system")),
    ],
)
def test_a_command_is_told_by_its_program_its_arguments_and_a_reason(
    text: str, command: Command
) -> None:
    assert only(text) == command


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("touch a 'b c'", ("a", "b c")),
        ("touch -d yesterday a", ("a",)),
        ("touch a $x", ("a",)),
        ("touch ~/a '~/b'", ("~/a", "./~/b")),
        ("mkdir -p -m 700 a/b", ("a/b",)),
        ("rm -rf -- -a", ("-a",)),
        ("mv a b", ("a", "b")),
        ("cp a b c", ("c",)),
        ("cp a $x", ()),
        ("cp -t d a b", ("d",)),
        ("cp --target-directory=d a b", ("d",)),
        ("chmod 644 a b", ("a", "b")),
        ("tee -a a /dev/null", ("a",)),
        ("dd if=a of=b", ("b",)),
        ("sort -o a b", ("a",)),
        ("uniq a b", ("b",)),
        ("curl -sLo a https://example.com", ("a",)),
        ("wget -O a https://example.com", ("a",)),
        ("sed -i s/a/b/ a b", ("a", "b")),
        ("sed -i '' s/a/b/ a", ("a",)),
        ("sed -i -e s/a/b/ a", ("a",)),
        ("sed -n 's/a/b/w out' a", ("out",)),
        ("perl -pi -e 's/a/b/' a", ("a",)),
        ("perl -i -pe 's/a/b/' a", ("a",)),
        ("git diff --output=a", ("a",)),
        ("git rm a", ("a",)),
        ("git -C d mv a b", ("d/a", "d/b")),
        ("git checkout HEAD -- a", ("a",)),
        ("find . -fprint a -delete", ("a",)),
        ("echo > a 2> b", ("a", "b")),
        ("echo > .git/hooks/pre-commit", (".git/hooks/pre-commit",)),
        ("env x=1 bash -c 'touch a'", ("a",)),
        ("echo > $x", ()),
    ],
)
def test_the_files_that_are_written_are_named_as_far_as_they_are_literal(
    text: str, paths: tuple[str, ...]
) -> None:
    assert only(text).paths == paths
    assert analyse(text).effect == "writes"


def test_after_a_cd_the_files_are_named_from_where_it_leads_too() -> None:
    assert analyse("cd .git && touch hooks/a").commands[1].paths == ("hooks/a", ".git/hooks/a")
    assert analyse("cd a; cd b; touch c /d").commands[2].paths == ("c", "/d", "a/b/c")
    assert analyse("cd a && bash -c 'touch b'").commands[1].paths == ("b", "a/b")
    assert analyse("cd $x && touch a").commands[1].paths == ("a",)


@pytest.mark.parametrize(
    "text",
    [
        "interlock mode coding --task T-1",
        " interlock mode coding\n",
        "'interlock' \"mode\" cod\\ing",
        "/usr/bin/interlock mode coding",
        "ls",
    ],
)
def test_one_command_with_nothing_around_it_is_simple(text: str) -> None:
    assert analyse(text).is_simple


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interlock mode coding; ls",
        "interlock mode coding;",
        "interlock mode coding &",
        "interlock mode coding\nls",
        "interlock mode coding | cat",
        "interlock mode coding && ls",
        "interlock mode coding > /dev/null",
        "interlock mode coding 2>&1",
        "interlock mode $x",
        "interlock mode $(echo coding)",
        "interlock mode `echo coding`",
        "interlock mode cod*",
        "interlock mode {coding,planning}",
        "interlock mode ~",
        "interlock mode coding # really",
        "x=1 interlock mode coding",
        "(interlock mode coding)",
        "{ interlock mode coding; }",
        "! interlock mode coding",
        "time interlock mode coding",
        "sudo interlock mode coding",
        "env interlock mode coding",
        "command interlock mode coding",
        "bash -c 'interlock mode coding'",
        "eval interlock mode coding",
        "python3 -m interlock mode coding",
        "./interlock mode coding",
        "~/bin/interlock mode coding",
        "interlock mode coding\r",
        "interlock mode cod\u200bing",
        "interlock mode 'coding",
        "interlock() { :; }",
        "$x",
    ],
)
def test_what_is_not_exactly_one_plain_command_is_not_simple(text: str) -> None:
    assert not analyse(text).is_simple


@pytest.mark.parametrize(
    "text",
    [
        "interlock approvals grant 1",
        "./.venv/bin/interlock approvals grant 1",
        "sudo interlock approvals grant 1",
        "bash -c 'interlock approvals grant 1'",
        "python -m interlock approvals grant 1",
        "uv run interlock approvals grant 1",
        "uvx interlock approvals grant 1",
        "INTERLOCK_HOME=/tmp interlock approvals grant 1",
        "inter''lock approvals grant 1 > /dev/null",
    ],
)
def test_interlock_is_seen_however_it_is_called(text: str) -> None:
    command = only(text)

    assert (command.program, command.effect) == ("interlock", "unknown")
    assert command.arguments == ("approvals", "grant", "1")


def test_a_text_that_is_too_long_or_nested_too_deep_is_unknown() -> None:
    def nested(levels: int) -> str:
        text = "rm a"
        for _ in range(levels):
            text = f"bash -c {shlex.quote(text)}"
        return text

    assert analyse("echo " + "a" * (BYTES_MAX - 5)).effect == "reads"
    assert analyse("rm " + "a" * (BYTES_MAX - 2)).effect == "unknown"
    assert analyse("rm " + "ä" * (BYTES_MAX // 2)).effect == "unknown"
    assert analyse(nested(5)).effect == "writes"
    assert analyse(nested(6)).effect == "unknown"
    assert analyse("echo " + "$(echo " * 5 + ")" * 5).effect == "reads"
    assert analyse("echo " + "$(echo " * 6 + ")" * 6).effect == "unknown"
    assert analyse("ls; " * 600).effect == "unknown"


def test_no_program_is_in_two_tables() -> None:
    tables = [set(READERS), set(VERBS), set(WRITERS)]

    assert sum(map(len, tables)) == len(tables[0] | tables[1] | tables[2])


PREFIXES = [
    "sudo ",
    "sudo -n -u bob ",
    "doas ",
    "env ",
    "env -i LC_ALL=C ",
    "nice -n 5 ",
    "ionice -c 3 ",
    "timeout -k 1 5 ",
    "stdbuf -oL ",
    "setsid ",
    "nohup ",
    "time ",
    "command ",
    "exec ",
    "busybox ",
    "xargs ",
    "xargs -0 -n 1 ",
    "/usr/bin/env x=1 ",
]
SHELLS = ["bash -c ", "bash -lc ", "sh -c ", "zsh -c ", "dash -c ", "eval ", "watch "]


@given(st.sampled_from(SIMPLE), st.lists(st.sampled_from(PREFIXES + SHELLS), max_size=5))
def test_no_chain_of_wrappers_makes_a_command_more_reading(command: str, chain: list[str]) -> None:
    before = analyse(command)

    text = command
    for wrapper in chain:
        text = wrapper + (text if wrapper in PREFIXES else shlex.quote(text))

    # A chain that no shell would run, like `xargs eval`, is unknown, whatever stands behind it.
    assert RANK[analyse(text).effect] >= min(RANK[before.effect], RANK["unknown"]), text


@given(st.sampled_from(COMMANDS), st.lists(st.sampled_from(SHELLS), max_size=5))
def test_no_shell_around_a_text_makes_it_reading(command: str, shells: list[str]) -> None:
    text = command
    for shell in shells:
        text = shell + shlex.quote(text)

    assert analyse(text).effect != "reads" or analyse(command).effect == "reads", text


CONNECTORS = ["; ", " && ", " || ", " | ", " |& ", " & ", "\n", ";", "&", "|", "\n\n# a\n"]
WRITES = [command for command in SIMPLE if analyse(command).effect == "writes"]


@given(st.sampled_from(SIMPLE), st.sampled_from(CONNECTORS), st.sampled_from(WRITES))
def test_a_command_joined_with_one_that_writes_writes(
    command: str, connector: str, writer: str
) -> None:
    assert analyse(f"{command}{connector}{writer}").effect == "writes"
    assert analyse(f"{writer}{connector}{command}").effect == "writes"


@given(st.sampled_from(COMMANDS), st.sampled_from(WRITES))
def test_a_writer_before_any_text_writes(command: str, writer: str) -> None:
    if "\0" not in command:
        assert analyse(f"{writer}; {command}").effect == "writes"


PIECES = st.sampled_from(
    [
        *"'\"\\$`(){}[]<>;&|#!~*?=-\n\t\0 aE1\ud800é",
        *("$(", "${", "$((", "$'", "<<E\n", "\nE\n", "[[ ", " ]]", "=~", "if ", "; then ", "; fi"),
        *("for x in ", "; do ", "; done", "case ", " in ", ";;", "esac", "bash -c ", "s/["),
        *("find . -exec ", "sed -n ", "awk ", "git -c ", "xargs -I"),
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
def test_any_text_has_an_analysis(text: str) -> None:
    analysis = analyse(text)

    assert analysis.effect in RANK
    assert analyse(f"rm a\n{text}").effect == ("unknown" if "\0" in text else "writes")


@pytest.mark.parametrize("before", ["", "echo ", '"', "cat <<E\n", "awk '", "env "])
@pytest.mark.parametrize(
    "piece",
    [
        *("$(", "'", "\\", "{", "\n", '"', "`", "${a:-", "$((", "((", "<<a ", "a;", "if ", "env "),
        *("a ", "1>a ", "''", "~''", "{a,", "$x[", "[[ ", "eval ", "`a`", "case a in ", "<("),
        *("a() ", "\\`", "[[:", "\\\\\\n", "-a ", "x=(", "bash -c ", "\r", "é"),
        *("flock a ", "find -exec ", "env a=1 ", "x=1 ", "( ", "function a ", "! "),
    ],
)
def test_the_time_taken_is_in_proportion_to_the_text(before: str, piece: str) -> None:
    text = (before + piece * BYTES_MAX).encode()[:BYTES_MAX].decode(errors="ignore")

    def seconds() -> float:
        start = time.process_time()  # of this process alone: others may be busy
        analyse(text)
        return time.process_time() - start

    assert any(seconds() < 0.5 for _ in range(3))
