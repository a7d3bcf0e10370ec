"""The words of a request and of a comment: bounded, without secrets, and commanding nobody."""

import msgspec
import pytest

from interlock.core.canonical import Json
from interlock.core.ids import SessionId, WorkflowId
from interlock.core.session.delivery_texts import (
    TEXT_CHARS_MAX,
    TITLE_CHARS_MAX,
    clean_text,
    comment_text,
    marker_of,
    request_description,
    request_title,
)
from interlock.core.unattended.handed_work import HandedWork
from interlock.core.unattended.order import Limits, UnattendedOrder, UnattendedState
from tests.core.session.secret_examples import GITHUB_TOKEN
from tests.core.unattended.test_handed_work import HANDOFF, VERDICT

SESSION, OTHER = SessionId("ses_0000000000000001"), SessionId("ses_0000000000000002")
ORDER = UnattendedOrder(WorkflowId("coding-task"), "Fix exports\n\nSee above", "/work", "here")
STATE = UnattendedState(ORDER, Limits(), "done", 1, 2, outcome="success")
TOKEN = GITHUB_TOKEN
FINDING: dict[str, Json] = {
    "severity": "major",
    "summary": "Wrong sum",
    "file": "a`.py",
    "line": 7,
    "mustFix": True,
}


def test_the_title_is_the_first_line_of_the_goal_within_bounds() -> None:
    assert request_title(ORDER) == "Fix exports"
    endless = msgspec.structs.replace(ORDER, goal="word " * 500)
    assert len(request_title(endless)) <= TITLE_CHARS_MAX


def test_a_description_has_what_was_handed_on_and_ends_with_the_mark() -> None:
    text = request_description(SESSION, STATE, HandedWork().with_output("notes", [HANDOFF]))

    assert text.startswith("Fix exports\n\nSee above\n\n### Decisions\n\n- Small steps\n")
    assert "### Tests\n\n- test_a\n" in text
    assert "- `a.py`\n" in text
    assert "Known limitations" not in text, "there are none"
    assert text.endswith(f"\n{marker_of(SESSION)}\n")


def test_a_comment_has_the_verdict_with_each_finding_at_its_place() -> None:
    verdict: dict[str, Json] = {
        **VERDICT,
        "findings": [FINDING, {"severity": "nit", "summary": "Odd name"}],
    }

    text = comment_text(SESSION, STATE, HandedWork().with_output("notes", [HANDOFF, verdict]))

    assert text.startswith("**Review: minor** (confidence: high)\n\nGood\n")
    assert "- **major**, must be fixed, `a.py:7`: Wrong sum\n- **nit**: Odd name\n" in text
    assert "Small steps" not in text


@pytest.mark.parametrize(
    ("handed", "expected"),
    [
        (HandedWork().with_output("The notes", [HANDOFF]), "Small steps"),
        (HandedWork().with_output("The notes", []), "The notes"),
        (HandedWork(), "left no notes"),
    ],
)
def test_a_comment_without_a_verdict_has_the_next_best(handed: HandedWork, expected: str) -> None:
    assert expected in comment_text(SESSION, STATE, handed)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"the token is {TOKEN}.", "the token is [secret removed: github-pat]."),
        (marker_of(OTHER), f"&lt;{marker_of(OTHER)[1:]}"),
        ("<!-<!---- interlock", "<!-&lt;!---- interlock"),
        ("/merge", "\\/merge"),
        ("done\n  /approve\n- /close", "done\n  \\/approve\n- \\/close"),
        ("> /label ~x", "> \\/label ~x"),
        ("\u00a0/approve", "\\/approve"),
        ("@bors r+, a@b.org", "@\u200bbors r+, a@b.org"),
        ("![i](http://x)", "!\\[i](http://x)"),
        ("see src/a.py", "see src/a.py"),
        ("a\x1b[2Jb\u202ec", "a\\x1b[2Jb\\u202ec"),
    ],
)
def test_what_others_wrote_tells_no_secret_forges_no_mark_and_gives_no_order(
    said: str, shown: str
) -> None:
    assert clean_text(said) == shown


def test_texts_are_cut_off_and_say_so() -> None:
    findings: list[Json] = [{"severity": "nit", "summary": "x" * 5000}] * 60
    verdict: dict[str, Json] = {**VERDICT, "summary": "y" * 100_000, "findings": findings}

    text = comment_text(SESSION, STATE, HandedWork().with_output("", [verdict]))

    assert len(text) < 60_000
    assert f"{'y' * TEXT_CHARS_MAX}\n\n(cut off)" in text
    assert "- and 10 more" in text
