"""Whether a shell command reads: by a table of commands, and by properties that hold for all."""

import shlex
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.gate.command.builtins import BUILTINS
from interlock.core.gate.command.judgement import EFFECTS
from interlock.core.gate.command.network_programs import may_reach_out
from interlock.core.gate.command.programs import READERS, VERBS
from interlock.core.gate.command.unwrap import WRAPPERS
from interlock.core.gate.network_use import network_use
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
    assert set(TABLE["evasions"]) == {"unknown"}
    assert len(TABLE["evasions"]["unknown"]) >= 100


def test_one_command_that_does_not_surely_read_is_enough_and_says_why() -> None:
    analysis = analyse("ls; python3 -c 1; rm a; echo b > c")

    assert [command.effect for command in analysis.commands] == ["reads", *["unknown"] * 3]
    assert (analysis.effect, analysis.reason) == ("unknown", "`python3 -c` may do anything")
    assert analyse("ls; pwd").reason == "`ls` only reads"
    assert analyse("").reason == "nothing is run"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("ls -l 'a b'", Command("ls", ("-l", "a b"), "reads", "`ls` only reads")),
        ("echo x > a", Command("echo", ("x",), "unknown", "redirection to `a`", ("a",))),
        ("/bin/touch a", Command("touch", ("a",), "unknown", "`touch` may do anything", ("a",))),
        ("sudo env x=1 make a", Command("make", ("a",), "unknown", "`make` may do anything")),
        ("bash -c 'make a'", Command("make", ("a",), "unknown", "`make` may do anything")),
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
    assert msgspec.structs.replace(only(text), words=()) == command


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("touch a 'b c'", ["a", "b c"]),
        ("touch a $x", ["a", "**"]),
        ("touch ~/a '~/b' $HOME/c", ["~/a", "./~/b", "~/c"]),
        ('touch "$PWD/a" ${PWD}/b $PWD$x', ["./a", "./b", ".**"]),
        ('touch "$INTERLOCK_HOME/a"', ["$INTERLOCK_HOME/a"]),
        ("touch a{b,c/{d,e}} f*", ["ab", "ac/d", "ac/e", "f*"]),
        ("touch a{1..9} b$(ls)c", ["a*", "b**c"]),
        ("mkdir -p a/b", ["a/b"]),
        ("rm -rf -- -a", ["-a"]),
        ("mv a b", ["b", "a"]),
        ("cp a b c", ["c"]),
        ("cp -t d a b", ["d"]),
        ("cp --target-directory=d a b", ["d"]),
        ("chmod 644 a b", ["a", "b"]),
        ("tee -a a", ["a"]),
        ("dd if=a of=b", ["b"]),
        ("sort -o a b", ["a"]),
        ("uniq a b", ["b"]),
        ("curl -sLo a https://example.com", ["a"]),
        ("wget -O a https://example.com", ["a"]),
        ("sed -i s/a/b/ a b", ["a", "b"]),
        ("sed -i '' s/a/b/ a", ["a"]),
        ("sed -i -e s/a/b/ a", ["a"]),
        ("sed -Ei.bak s/a/b/ a", ["a"]),
        ("perl -pi -e 's/a/b/' a", ["a"]),
        ("perl -i -pe 's/a/b/' a", ["a"]),
        ("perl -Mstrict -ne print a", []),
        ("yq -i '.a = 1' a", ["a"]),
        ("git diff --output=a", ["a"]),
        ("git rm a", ["a"]),
        ("git -C d mv a b", ["d/b", "d/a"]),
        ("git checkout HEAD -- a", ["HEAD", "a"]),
        ("git stash push -- a", ["push", "a"]),
        ("git add a", []),
        ("git commit -o a", []),
        ("sqlite3 a 'DELETE FROM b'", ["a", "DELETE FROM b"]),
        ("find a b -delete", ["a", "b"]),
        ("find a b -name 'c*' -delete", ["a/c*", "b/c*"]),
        ("find -delete", ["."]),
        ("find . -fprint a", ["a"]),
        ("find a b -exec rm {} +", ["a", "b"]),
        ("find a -name b -exec sh -c 'rm c' {} \\;", ["c"]),
        ("xargs -I{} cp {} a", ["a"]),
        ("echo > a 2> b", ["a", "b"]),
        ("env x=1 bash -c 'touch a'", ["a"]),
        ("uv run touch a", ["a"]),
        ("flock a touch b", ["b"]),
        ("make a", []),
    ],
)
def test_the_files_that_are_written_are_named(text: str, paths: list[str]) -> None:
    analysis = analyse(text)

    assert [path for command in analysis.commands for path in command.paths] == paths
    assert analysis.effect == "unknown"


@pytest.mark.parametrize(
    ("text", "trees"),
    [
        ("rm -r a b", ["a", "b"]),
        ("mv a b/c d", ["d/a", "d/c", "a", "b/c"]),
        ("cp a/b c", ["c/b"]),
        ("cp a/. b", ["b/.", "b/**"]),
        ("rsync -a a/ b/", ["b/a", "b/**"]),
        ("cp -t d a", ["d/a"]),
        ("ln -s a/b", ["./b"]),
        ('cp "$x" b', ["b/**"]),
        ("git mv a b", ["b/a", "a"]),
        ("git checkout a", ["a"]),
        ("find a -delete", ["a"]),
        ("touch a", []),
    ],
)
def test_what_is_removed_or_replaced_counts_with_all_that_is_below(
    text: str, trees: list[str]
) -> None:
    assert list(analyse(text).commands[0].trees) == trees


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("git ls-remote origin", "remote"),
        ("gh pr view 1 && gh pr diff 1 | head -5", "remote"),
        ("python3 -m pip list --outdated", "remote"),
        ("curl -s https://example.com | jq .", "remote"),
        ("kubectl -n a get pods | head -5", "daemon"),
        ("cd a; docker compose ps", "daemon"),
        ("systemctl status nginx; journalctl -u nginx -n 5", "daemon"),
        ("for x in a b; do dig $x; done", "daemon"),
        ("docker run a", "daemon"),
        ("git status", None),
        ("echo docker ps", None),
        ("docker --version", None),
        ("docker ps; rm a", None),
        ("docker ps > a", None),
        ("./docker ps", None),
        ("PATH=. docker ps", None),
        ("docker ps; curl https://example.com", None),
        ("curl https://example.com; git log -1", None),
        ("cd a; npm view b", None),
        ("git -C a ls-remote", None),
        ("curl -d a https://example.com", None),
        ("git push", None),
    ],
)
def test_a_command_reaches_out_in_one_way_or_not_at_all(text: str, kind: str | None) -> None:
    use = network_use(analyse(text))

    assert (use and use.kind) == kind


@pytest.mark.parametrize("command", [c for c in COMMANDS if analyse(c).effect == "asks"])
def test_no_command_that_asks_is_overlooked(command: str) -> None:
    """The reader of shell text is only asked where a part of the text makes it likely."""
    assert may_reach_out(command)


@pytest.mark.parametrize(
    "command", ["echo through", "pytest --host localhost", "npm test", "psqlfoo", "git remote -v"]
)
def test_a_part_of_a_word_is_not_taken_for_a_program(command: str) -> None:
    """What is taken for one is handed to readers that take ten times as long."""
    assert not may_reach_out(command)


def test_after_a_cd_it_is_said_where_it_leads() -> None:
    def folders(text: str) -> list[str]:
        return [command.folder for command in analyse(text).commands]

    assert folders("cd .git && touch hooks/a") == [".git", ".git"]
    assert folders("ls; cd a; cd b; touch c; cd /d; pwd") == ["", "a", "a/b", "a/b", "/d", "/d"]
    assert folders("cd a && bash -c 'touch b'") == ["a", "a"]
    assert folders("cd a; cd $x && touch a") == ["a", "", ""]
    assert folders(f"cd a; cd {'b' * 5000}; touch a") == ["a", "", ""]


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
        "interlock mode coding &",
        "interlock mode coding | cat",
        "interlock mode coding > /dev/null",
        "interlock mode $x",
        "interlock mode $(echo coding)",
        "interlock mode cod*",
        "interlock mode {coding,planning}",
        "interlock mode ~",
        "interlock mode coding # really",
        "x=1 interlock mode coding",
        "(interlock mode coding)",
        "! interlock mode coding",
        "time interlock mode coding",
        "sudo interlock mode coding",
        "bash -c 'interlock mode coding'",
        "eval interlock mode coding",
        "python3 -m interlock mode coding",
        "./interlock mode coding",
        "interlock mode coding\r",
        "interlock mode cod\u200bing",
        "interlock mode 'coding",
        "interlock() { :; }",
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
    assert analyse(nested(5)).commands[0].program == "rm"
    assert analyse(nested(6)).commands[0].program == ""
    assert analyse("echo " + "$(echo " * 5 + ")" * 5).effect == "reads"
    assert analyse("echo " + "$(echo " * 6 + ")" * 6).effect == "unknown"
    assert analyse("ls; " * 600).effect == "unknown"


def test_no_program_is_in_two_tables() -> None:
    tables = [set(READERS), set(VERBS), set(WRAPPERS), set(BUILTINS)]

    assert sum(map(len, tables)) == len(set[str]().union(*tables))


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

    assert EFFECTS.index(analyse(text).effect) >= EFFECTS.index(before.effect), text


@given(st.sampled_from(COMMANDS), st.lists(st.sampled_from(SHELLS), max_size=5))
def test_no_shell_around_a_text_makes_it_reading(command: str, shells: list[str]) -> None:
    text = command
    for shell in shells:
        text = shell + shlex.quote(text)

    assert analyse(text).effect != "reads" or analyse(command).effect == "reads", text


CONNECTORS = ["; ", " && ", " || ", " | ", " |& ", " & ", "\n", ";", "&", "|", "\n\n# a\n"]
UNKNOWN = [command for command in SIMPLE if analyse(command).effect == "unknown"]


@given(st.sampled_from(COMMANDS), st.sampled_from(CONNECTORS), st.sampled_from(UNKNOWN))
def test_no_command_around_it_makes_another_reading(
    command: str, connector: str, unknown: str
) -> None:
    assert analyse(f"{unknown}{connector}{command}").effect == "unknown"
    if analyse(command).is_simple:
        assert analyse(f"{command}{connector}{unknown}").effect == "unknown"


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

    assert analysis.effect in ("reads", "unknown")
    assert analyse(f"rm a\n{text}").effect == "unknown"
