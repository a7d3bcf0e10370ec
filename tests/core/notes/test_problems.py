"""Problems: what `interlock note check` says, and about what it is silent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.notes.note import Note
from interlock.core.notes.note_types import TYPES
from interlock.core.notes.problems import NoteProblem, find_problems
from tests.core.notes.note_samples import note


def rules(path: str, checked: Note) -> list[str]:
    return [problem.rule for problem in find_problems(path, checked)]


def test_a_good_note_has_no_problem() -> None:
    assert find_problems("decisions/ADR-007-use-sqlite.md", note(type_="decision")) == []
    assert find_problems("anywhere/Any Name.md", note()) == []
    assert find_problems("bugs/it fails.md", note(type_="bug")) == []


@pytest.mark.parametrize(
    ("path", "type_", "rule"),
    [
        ("decisions/use-sqlite.md", "decision", "name"),
        ("decisions/adr-007-use-sqlite.md", "decision", "name"),
        ("decisions/ADR-use-sqlite.md", "decision", "name"),
        ("decisions/ADR-007.md", "decision", "name"),
        ("decisions/ADR-007-.md", "decision", "name"),
        ("decisions/ADR-007-use sqlite.md", "decision", "name"),
        ("decisions/ADR-7-use-sqlite.md", "decision", "number"),
        ("decisions/ADR-0007-use-sqlite.md", "decision", "number"),
        ("decisions/REQ-007-use-sqlite.md", "decision", "name"),
        ("sessions/SESSION-2026-11-16-x.md", "session", "name"),
        ("sessions/2026-11-16-session-01.md", "session", "deprecated"),
        ("skills/Skill-Git-001.md", "skill", "deprecated"),
        ("security/TM-001-login.md", "security", "deprecated"),
        ("retrospectives/2026-11-16-sprint.md", "retrospective", "deprecated"),
        ("ADR-007-x.md", "decision", "folder"),
        ("notes/ADR-007-x.md", "decision", "folder"),
        ("architecture/ADR-007-x.md", "decision", "deprecated"),
        ("architecture/decisions/ADR-007-x.md", "Decision", "deprecated"),
        ("specs/requirements/REQ-001-x.md", "requirement", "deprecated"),
        ("specs/a/b/requirements/REQ-001-x.md", "requirement", "folder"),
        ("decisions/ADR-007-x.md", "note", "type"),
        ("decisions/adr-007-x.md", "bug", "type"),
    ],
)
def test_what_breaks_a_rule_is_said_and_what_to_do(path: str, type_: str, rule: str) -> None:
    found = find_problems(path, note(type_=type_))

    assert [problem.rule for problem in found] == [rule]
    assert found[0].severity == "warning"
    assert found[0].suggestion


def test_the_words_of_a_problem_say_what_is_true_and_what_to_do() -> None:
    assert find_problems("decisions/ADR-7-use-sqlite.md", note(type_="decision")) == [
        NoteProblem(
            "number",
            "the number in `ADR-7-use-sqlite.md` has 1 digits and not three",
            "call it `ADR-007-use-sqlite.md`",
        )
    ]


def test_a_specification_lies_under_its_subject() -> None:
    assert rules("specs/login/requirements/REQ-001-x.md", note(type_="requirement")) == []
    assert rules("features/FEAT-001-login/tasks/TASK-001-x.md", note(type_="task")) == []


def test_slugs_of_any_script_fit() -> None:
    for slug in ("базы-данных", "数据库", "हिन्दी", "Under_score"):
        assert rules(f"decisions/ADR-007-{slug}.md", note(type_="decision")) == []


@pytest.mark.parametrize(
    ("type_", "status", "is_known"),
    [
        ("task", "in-progress", True),
        ("task", "IN_PROGRESS", True),
        ("task", "implemented", False),
        ("feature", "complete", True),
        ("feature", "done", False),
        ("requirement", "deferred", True),
        ("design", "deferred", False),
        ("decision", "accepted", True),
        ("decision", "anything", False),
    ],
)
def test_a_status_is_one_of_its_type(type_: str, status: str, *, is_known: bool) -> None:
    kind = TYPES[type_]
    path = f"{kind.folder.replace('*', 'x')}/{kind.prefix}-001-x.md"

    found = rules(path, note(type_=type_, values={"status": status}))

    assert found == ([] if is_known else ["status"])


def test_quality_is_a_hint_and_never_more() -> None:
    poor = find_problems("x.md", note(tags=0, observations=1, relations=0, prose_links=5))
    rich = find_problems("x.md", note(tags=6, observations=11, relations=9))

    assert [problem.severity for problem in poor + rich] == ["hint"] * 6
    assert [problem.message for problem in poor] == [
        "it has 1 observation",
        "it has no relations",
        "it has no tags",
    ]


def test_the_borders_of_quality_are_good() -> None:
    assert find_problems("x.md", note(tags=2, observations=3, relations=2)) == []
    assert find_problems("x.md", note(tags=5, observations=10, relations=8, prose_links=99)) == []


def test_frontmatter_that_cannot_be_read_is_an_error_and_all_that_is_said() -> None:
    broken = note(problem="line 2: tabs", tags=0)

    assert [(p.rule, p.severity) for p in find_problems("decisions/ADR-1.md", broken)] == [
        ("frontmatter", "error")
    ]


SESSION = "session-ses_0123456789abcdef"


@pytest.mark.parametrize(
    "path",
    [
        f"sessions/{SESSION}.md",
        "sessions/session-ses-0123456789abcdef.md",
        "sessions/current-session.md",
        f"sessions/{SESSION}-agent-implementer.md",
        f"{SESSION}-agent-qa.md",
        f"{SESSION}-summary.md",
        f"sessions/{SESSION}-history-2.md",
    ],
)
def test_what_we_publish_is_not_judged(path: str) -> None:
    assert find_problems(path, note(type_="session", tags=0, observations=0)) == []


@pytest.mark.parametrize(
    "path",
    [
        "sessions/session-login.md",
        "sessions/my-current-session.md",
        "old/sessions/current-session.md",
        "sessions/current-session-2.md",
        f"{SESSION}.md",
        "x-summary.md",
    ],
)
def test_what_only_looks_like_ours_is(path: str) -> None:
    assert "name" in rules(path, note(type_="session"))


@given(st.text(st.characters()), st.sampled_from(["note", *TYPES]), st.text(st.characters()))
def test_any_path_may_be_checked(path: str, type_: str, status: str) -> None:
    for problem in find_problems(path, note(type_=type_, values={"status": status})):
        assert problem.message
        assert problem.suggestion
