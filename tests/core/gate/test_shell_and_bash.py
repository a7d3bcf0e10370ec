"""Our reading of a shell command, held against what bash makes of it."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.gate.shell import analyse
from tests.effort import scale

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash")

PLAIN = st.text("abcXYZ019_/.:@%+=^,-", min_size=1, max_size=4)
SINGLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.just("\n"))
ESCAPED = st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc"])
IN_DOUBLE = st.sampled_from(
    [
        "a",
        "b c",
        "'",
        "\\\\",
        '\\"',
        "\\$",
        "\\`",
        "\\a",
        "\\\n",
        "$ ",
        "$/",
        "#",
        ";",
        ">",
        "{a,b}",
        "\n",
    ]
)
ANSI = st.sampled_from(
    ["a", "b c", "\\n", "\\t", "\\\\", '"', "\\x41", "\\101", "\\u00e9", "\\e", "$x", ";", "\\?"]
)
WORD = st.lists(
    st.one_of(
        PLAIN,
        SINGLE.filter(lambda text: "'" not in text).map(lambda text: f"'{text}'"),
        ESCAPED.map(lambda char: f"\\{char}"),
        st.lists(IN_DOUBLE).map(lambda parts: f'"{"".join(parts)}."'),
        st.lists(ANSI).map(lambda parts: f"$'{''.join(parts)}'"),
        st.just("\\\n"),
    ),
    min_size=1,
    max_size=5,
).map("".join)


@settings(max_examples=scale(150))
@given(st.lists(WORD, min_size=1, max_size=20))
def test_a_literal_word_is_unquoted_as_bash_does_it(words: list[str]) -> None:
    text = f"echo {' '.join(words)} ."
    arguments = analyse(text).commands[0].arguments

    shown = subprocess.run(
        [BASH or "", "-c", text.replace("echo", "printf '%s\\0'", 1)],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )

    assert list(arguments) == shown.stdout.decode().split("\0")[:-1]


class Texts:
    """Makes shell text in which, somewhere, `touch m` may stand, so that it may run or not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def word(self, depth: int) -> str:
        literal = self.pick("a", "-n", "m", "*", "~", "{a,b}", "-o", "E", "}", "]]", "#", "=", "[")
        if depth <= 0:
            return literal
        quoted = self.pick("$(touch m)", "`touch m`", "a b", '"', ";touch m;", "a[$(touch m)]")
        expanded = self.pick("x", "x:-a", "#x", "x@P", "!x", "x:x", "x[0]", "x^^", "x/a/b", "x=m")
        match self.random.randrange(14):
            case 0:
                return f"'{quoted}'"
            case 1:
                return f"${{{expanded}}}"
            case 2:
                return f"\\{self.pick('a', '$', '`', ' ', chr(10), ';', '(')}"
            case 3:
                return "$'" + self.pick("a", "\\n", "\\x41", "\\'", "$(touch m)") + "'"
            case 4:
                return f"$({self.commands(depth - 1)})"
            case 5:
                return f'"$({self.commands(depth - 1)})"'
            case 6:
                inner = self.commands(depth - 1).replace("\\", "\\\\").replace("`", "\\`")
                return f"`{inner}`"
            case 7:
                return f"{self.pick('<', '>')}({self.commands(depth - 1)})"
            case 8:
                return f"${{x{self.pick(':-', '-', ':=', '+', '#', '/')}{self.word(depth - 1)}}}"
            case 9:
                return f'"{self.word(depth - 1)}"'
            case 10:
                return f"$(({self.word(depth - 1)}))"
            case 11:
                return self.word(depth - 1) + self.word(depth - 1)
            case 12:
                return "'" + self.commands(depth - 1).replace("'", "'\\''") + "'"
            case _:
                return literal

    def simple(self, depth: int) -> str:
        words = " ".join(self.word(depth) for _ in range(self.random.randrange(3)))
        if depth <= 0:
            return self.pick("touch m", "true", "echo a")
        quoted = "'" + self.commands(depth - 1).replace("'", "'\\''") + "'"
        match self.random.randrange(12):
            case 0:
                return "touch m"
            case 1:
                delimiter = self.pick("E", "'E'", "\\E", '"E"')
                after = self.pick("", f"; {self.simple(depth - 1)}", f" {self.word(depth - 1)}")
                return f"cat <<{delimiter}{after}\n{self.word(depth)}\nE\n"
            case 2:
                return f"{self.pick('x', 'PATH', 'RANDOM')}={self.word(depth)} {words}"
            case 3:
                target = self.pick("/dev/null", "m", "1", "-", self.word(depth - 1))
                return f"echo {words} {self.pick('>', '2>', '&>', '>&', '<>', '<', '<<<')}{target}"
            case 4:
                return (
                    f"{self.pick('command', 'env', 'nice', 'xargs', '!')} {self.simple(depth - 1)}"
                )
            case 5:
                return f"{self.pick('bash -c', 'sh -c', 'eval', 'xargs bash -c')} {quoted}"
            case 6:
                tested = self.pick("==", "-eq", "=~", "&&", "<")
                return f"[[ {self.word(depth)} {tested} {self.word(depth)} ]]"
            case 7:
                end = self.pick("\\;", "{} +")
                return f"find . {self.pick('-exec', '-name')} {words} {end}"
            case 8:
                return f"{self.pick('sort', 'uniq', 'tee', 'sed -n', 'awk', 'read')} {words}"
            case 9:
                return f"{self.pick('declare -i x=', 'let x=', 'export x=')}{self.word(depth)}"
            case _:
                return f"{self.pick('echo', 'cat', 'ls', 'printf %s', 'test -n')} {words}"

    def commands(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("touch m", "true", "echo a", "cat a")
        one, two = self.simple(depth), self.simple(depth - 1)
        joined = self.pick(" ; ", " && ", " || ", " | ", "\n", " # '\n", " # \\\n")
        match self.random.randrange(9):
            case 0:
                return f"{{ {one}; }} {self.pick('', '>/dev/null', '>m')}"
            case 1:
                return f"({one})"
            case 2:
                return f"if {one}; then {two}; else {self.commands(depth - 1)}; fi"
            case 3:
                return f"for {self.pick('x', 'PATH')} in {self.word(depth)} a; do {one}; done"
            case 4:
                pattern = self.pick("a", "*", "(b", "a|*", self.word(depth))
                return f"case {self.word(depth)} in {pattern}) {one};; esac"
            case 5:
                return f"f() {{ {one}; }}"
            case _:
                return f"{one}{joined}{two}"

    def mistaken(self) -> str:
        """Sometimes with a character too many, or one too few."""
        text = self.commands(3)
        at = self.random.randrange(len(text))
        if self.random.random() < 0.8:
            return text
        return text[:at] + self.pick(*"'\"`$\\(){}\n;&|<>#") + text[at + self.random.randrange(2) :]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a `bin` that has nothing in it that could do harm."""
    made = tmp_path_factory.mktemp("shell")
    (made / "bin").mkdir()
    for name in ("touch", "cat", "ls", "sort", "uniq", "tee", "sed", "awk", "find", "env", "xargs"):
        if program := shutil.which(name):
            (made / "bin" / name).symlink_to(program)
    for name in ("bash", "sh", "nice"):
        (made / "bin" / name).symlink_to(shutil.which(name) or "/bin/sh")
    return made


def run(text: str, work: Path, *, path: Path) -> None:
    """Let bash run it, and end what is left of it: some of these texts wait for themselves."""
    process = subprocess.Popen(
        [BASH or "", "-c", text],
        cwd=work,
        env={"PATH": str(path), "HOME": str(work)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@settings(max_examples=scale(400))
@given(st.integers(0, 2**32))
def test_what_is_called_reading_leaves_nothing_behind_when_bash_runs_it(
    folder: Path, seed: int
) -> None:
    text = Texts(seed).mistaken()
    if analyse(text).effect != "reads":
        return
    work = folder / "work"
    work.mkdir(exist_ok=True)

    run(text, work, path=folder / "bin")

    left = os.listdir(work)
    shutil.rmtree(work)
    assert left == [], text
