"""The search finds sessions by whatever somebody remembers of them."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.runs import user_actions
from interlock.app.sessions.search import SearchHit, make_excerpt, search
from interlock.core.ids import NodeId
from interlock.core.session.answer import RenderedAnswer
from tests.scenes import handed_in, started


def tip(app: App, answered: RenderedAnswer) -> NodeId:
    """Where the run stands."""
    (run,) = app.reader.runs(answered.session)
    assert run.tip
    return run.tip


def hits(app: App, query: str, *, limit: int = 20, is_archived: bool = False) -> list[SearchHit]:
    return list(search(app, query, limit=limit, is_archived=is_archived).hits)


@pytest.mark.both_stores
@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("bundles", ["goal"]),
        ("STREAM bundles", ["goal"]),
        ("undle", ["goal"]),
        ("bundles?", ["goal"]),
        ("line", ["workflow"]),
        ("shop", ["project"]),
        ("größe", ["notes"]),
        ("GRÖSSE", []),
        ("reader digests", ["notes"]),
        ("header", ["notes"]),
        ("reader header", []),  # in two places
        ("цикл", ["notes"]),
        ("bundles header", []),  # in the goal and in notes
        ("notes", []),  # the name of a field, not a word of anybody
        ("output_appended", []),
        ("stepCount", []),
        ('"quoted"', ["notes"]),
        ("\\n", []),
        ("", []),
        ("\0", []),
    ],
)
def test_words_are_found_where_somebody_wrote_them(
    app: App, tmp_path: Path, query: str, kinds: list[str]
) -> None:
    first = started(app, tmp_path / "shop", "Stream the Bundles")
    second = handed_in(app, first, "## Done\nA **reader** that checks\ndigests. Größe: цикл")
    handed_in(app, second, 'The header is read, and "quoted"')

    found = hits(app, query)
    assert [hit.kind for hit in found] == kinds
    assert {hit.session for hit in found} <= {first.session}


def test_a_hit_in_notes_names_the_step_and_shows_the_words(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path, "Mend the parser")
    node = tip(app, first)
    handed_in(app, first, f"{'before ' * 30}\n## The **needle** is here\n{'after ' * 60}")
    (hit,) = hits(app, "NEEDLE")

    assert (hit.kind, hit.session, hit.run, hit.node) == (
        "notes",
        first.session,
        first.run,
        node,
    )
    assert (hit.title, hit.workspace) == ("Mend the parser", str(tmp_path))
    assert hit.excerpt.match == "needle"
    assert hit.excerpt.before.startswith("…")
    assert hit.excerpt.before.endswith("before The ")
    assert hit.excerpt.after.startswith(" is here after")
    assert hit.excerpt.after.endswith("…")


def test_ids_are_found_whole_short_and_without_their_kind(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path, "Mend the parser")
    started(app, tmp_path, "Another one")
    node = tip(app, first)

    for name, expected in (
        (first.session, (first.session, None, None)),
        (first.run, (first.session, first.run, None)),
        (node, (first.session, first.run, node)),
    ):
        kind, _, digits = name.partition("_")
        for query in (name, name.upper(), f"{kind}_{digits[:8]}", digits[:9]):
            (hit,) = hits(app, query)
            assert (hit.session, hit.run, hit.node) == expected
            assert (hit.kind, hit.title) == ("id", "Mend the parser")
    assert hits(app, "ses_zz") == []
    assert len(hits(app, "ses_")) == 2


@pytest.mark.both_stores
def test_the_best_place_comes_first_and_then_what_was_changed_last(
    app: App, tmp_path: Path
) -> None:
    by_project = started(app, tmp_path / "gate", "One")
    by_goal = started(app, tmp_path / "a", "Open the gate")
    by_notes = started(app, tmp_path / "b", "Two")
    handed_in(app, by_notes, "The gate is open")
    newer_goal = started(app, tmp_path / "c", "Gate keeping")

    found = hits(app, "gate")
    assert [hit.session for hit in found] == [
        newer_goal.session,
        by_goal.session,
        by_project.session,
        by_notes.session,
    ]
    result = search(app, "gate", limit=2)
    assert [hit.session for hit in result.hits] == [newer_goal.session, by_goal.session]
    assert result.has_more
    assert not search(app, "gate", limit=4).has_more


def test_archived_sessions_are_found_only_if_somebody_asks(app: App, tmp_path: Path) -> None:
    first = started(app, tmp_path, "Mend the parser")
    node = tip(app, first)
    handed_in(app, first, "A needle")
    user_actions.set_archived(app, first.session, is_archived=True)

    for query in ("parser", "needle", first.session, node):
        assert hits(app, query) == []
        assert [hit.session for hit in hits(app, query, is_archived=True)] == [first.session]


def test_a_search_that_was_cut_says_so(app: App, tmp_path: Path) -> None:
    older = started(app, tmp_path, "One")
    handed_in(app, older, "A needle")
    newer = started(app, tmp_path, "Two")
    handed_in(app, newer, "Another needle")

    whole = search(app, "needle", limit=9)
    assert [hit.session for hit in whole.hits] == [newer.session, older.session]
    assert whole.notes_since_ms is None
    cut = search(app, "needle", limit=9, events_max=1)
    assert [hit.session for hit in cut.hits] == [newer.session]
    assert cut.notes_since_ms is not None


def test_a_long_session_does_not_crowd_out_the_others(app: App, tmp_path: Path) -> None:
    other = started(app, tmp_path, "One")
    handed_in(app, other, "A needle")
    answered = started(app, tmp_path, "Two")
    for number in range(5):  # the same step, again and again
        handed_in(app, answered, f"Needle {number}")

    found = hits(app, "needle")
    assert [hit.session for hit in found].count(answered.session) == 3
    assert other.session in {hit.session for hit in found}


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("a Word b", ("word",), ("a ", "Word", " b")),
        ("a b", ("absent",), ("", "", "a b")),
        ("x" * 300, ("x" * 200,), ("", "x" * 200, "…")),
        (f"{'a' * 60} word {'b' * 200}", ("word",), (f"…{'a' * 49} ", "word", f" {'b' * 105}…")),
    ],
)
def test_an_excerpt_is_one_line_around_the_match(
    text: str, words: tuple[str, ...], expected: tuple[str, str, str]
) -> None:
    excerpt = make_excerpt(text, words)

    assert (excerpt.before, excerpt.match, excerpt.after) == expected
