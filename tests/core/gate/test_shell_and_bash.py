"""Our reading of a shell command, held against what a shell makes of it."""

import shutil
import subprocess
from itertools import chain, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.gate.shell import analyse
from tests.core.gate.command_texts import CommandTexts
from tests.core.gate.scratch_tree import ScratchTree
from tests.effort import scale, seeded

SHELLS = [path for name in ("bash", "zsh") if (path := shutil.which(name))]
pytestmark = pytest.mark.skipif(not SHELLS, reason="there is no bash")

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


@settings(max_examples=scale(60))
@given(st.lists(WORD, min_size=1, max_size=20))
def test_a_literal_word_is_unquoted_as_bash_does_it(words: list[str]) -> None:
    text = f"echo {' '.join(words)} ."
    arguments = analyse(text).commands[0].arguments

    shown = subprocess.run(
        [SHELLS[0], "-c", text.replace("echo", "printf '%s\\0'", 1)],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )

    assert list(arguments) == shown.stdout.decode().split("\0")[:-1]


WRITING = ("xz -t -d z.xz", "bzip2 -t --decompress z.bz2", "sort -o a a", "sed -i s/a/b/ a")
"""Programs that only read without one of these options; chance seldom draws it."""


@pytest.mark.invariant("reading-changes-nothing")
def test_what_is_called_reading_changes_nothing_when_a_shell_runs_it(tmp_path: Path) -> None:
    seed, _ = seeded()
    tree, texts = ScratchTree(tmp_path), CommandTexts(seed)
    tried = chain(WRITING, iter(texts.text, None))
    reading = (text for text in tried if analyse(text).effect == "reads")
    for text in islice(reading, scale(150)):
        for shell in SHELLS:
            assert tree.changes(shell, text) == [], (seed, shell, text)


def test_a_change_in_the_tree_is_seen(tmp_path: Path) -> None:
    tree = ScratchTree(tmp_path)

    for text, changed in (
        ("touch m", [".", "/m"]),
        ("touch a", ["/a"]),
        ("chmod 700 a", ["/a"]),
        ("ln a home/x", ["/a", "/home", "/home/x"]),
        ("ln -sf b l", [".", "/l"]),
        ("touch ~/x", ["/home", "/home/x"]),
        ("cat a > $TMPDIR/x; rm $TMPDIR/x", ["/tmp"]),
        ("cat a; ls; git status; git diff", []),
    ):
        assert tree.changes(SHELLS[0], text) == changed, text
