"""What is taken from the hands of a model: artifacts of the right shape, and files of the work."""

import pytest

from interlock.core.canonical import Json
from interlock.core.unattended.handed_work import HandedWork, relative_paths

HANDOFF: dict[str, Json] = {
    "kind": "coding_handoff",
    "keyDecisions": ["Small steps"],
    "knownLimitations": [],
    "testsAdded": ["test_a"],
    "filesChanged": ["a.py"],
}
VERDICT: dict[str, Json] = {
    "kind": "review_verdict",
    "verdict": "minor",
    "confidence": "high",
    "findings": [],
    "summary": "Good",
}


def test_the_newest_of_each_counts_and_what_is_none_counts_for_nothing() -> None:
    newer: dict[str, Json] = {**HANDOFF, "kind": "wr.coding_handoff", "filesChanged": ["b.py"]}
    misshapen: list[Json] = [7, "text", {"kind": 3}, {"kind": "gap"}, {**HANDOFF, "testsAdded": 1}]

    handed = (
        HandedWork().with_output("one", [HANDOFF, VERDICT]).with_output("", [newer, *misshapen])
    )

    assert handed.handoff is not None
    assert handed.handoff.files_changed == ("b.py",)
    assert handed.verdict is not None
    assert (handed.verdict.verdict, handed.notes) == ("minor", "one")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("src/a.py", "src/a.py"),
        (" ./src//a.py ", "src/a.py"),
        ("/work/tree/src/a.py", "src/a.py"),
        ("-rf", "-rf"),
        (":(glob)**", ":(glob)**"),
        (".gitignore", ".gitignore"),
        ("../a.py", None),
        ("src/../../a.py", None),
        ("/etc/passwd", None),
        ("/work/tree2/a.py", None),
        (".git/config", None),
        ("sub/.GIT/hooks/x", None),
        (".git. /config", None),
        ("a\0b", None),
    ],
)
def test_a_named_file_is_in_the_worktree_or_is_none(name: str, path: str | None) -> None:
    expected = ((), (name,)) if path is None else ((path,), ())

    assert relative_paths([name], "/work/tree") == expected


def test_a_file_that_is_named_twice_is_one_and_the_top_is_none() -> None:
    assert relative_paths(["a", "./a", ".", ""], "/work") == (("a",), ())
