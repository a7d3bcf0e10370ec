"""A hand-off file becomes notes that a reader, a search and a session start can use."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.handoff.migration import TITLE_CHARS_MAX, Migration, plan_migration
from interlock.core.handoff.parse import HandoffContent, HandoffSection, HandoffStep, parse_handoff
from interlock.core.notes.grammar import parse_note
from interlock.core.notes.naming import canonical_title
from interlock.core.notes.status import parse_status

FILES = Path(__file__).parent / "samples"
NOTHING = HandoffContent("", (), (), (), (), ())


def migrated(text: str) -> Migration:
    return plan_migration(parse_handoff(text), "HANDOFF.md")


def test_the_feature_is_a_note_with_its_progress_next_steps_and_blockers() -> None:
    found = migrated(
        "## Active Feature\nDark mode\n## Progress\n- [x] Colours\n- [ ] Toggle\n"
        "## Blockers\n- Kim is away (till Monday)\n"
        "## Next Steps\n1. Ask design\n   about contrast\n"
    )

    (feature,) = found.notes
    assert feature.content == (
        "# Dark mode\n\nTaken from `HANDOFF.md`.\n\n"
        "## Progress\n\n- [x] Colours\n- [ ] Toggle\n\n"
        "## Next steps\n\n- [ ] Ask design about contrast\n\n"
        "## Blockers\n\n- [blocker] Kim is away (till Monday)\n"
    )
    assert (feature.title, feature.type, parse_status(feature.status)) == (
        "Dark mode",
        "feature",
        "active",
    )
    (blocker,) = parse_note(feature.content, path="n.md").observations
    assert (blocker.category, blocker.text) == ("blocker", "Kim is away")
    assert (found.feature, found.task, found.leftover_text) == (
        "Dark mode",
        "Ask design about contrast",
        "",
    )


def test_what_has_no_box_is_no_work_to_do() -> None:
    found = migrated(
        "## Progress\n- Verified on staging\n- [ ] Toggle\n## In Progress\n- Colours\n"
        "## Done\n- Icons\n"
    )

    (task,) = found.notes
    assert (
        "## Progress\n\n- Verified on staging\n- [ ] Toggle\n- [ ] Colours\n- [x] Icons\n"
        in task.content
    )
    assert found.task == "Toggle"


def test_without_a_feature_the_work_is_a_task() -> None:
    found = migrated("## Progress\n- [x] Colours\n- [ ] Toggle\n")

    (task,) = found.notes
    assert (task.title, task.type) == ("Go on from HANDOFF.md", "task")
    assert (found.feature, found.task) == ("", "Toggle")


def test_each_decision_is_a_note_that_belongs_to_the_feature() -> None:
    found = migrated(
        "## Feature\nDark mode\n## Decisions\n- **Variables**, not classes\n"
        "### No toggle in the menu\n\nToo deep.\n\n- Considered: a key\n"
    )

    _, first, second = found.notes
    assert "\n**Variables**, not classes\n" in first.content, "with its marks"
    assert (first.title, first.type, parse_status(first.status)) == (
        "Variables, not classes",
        "decision",
        "active",
    )
    assert second.content == (
        "# No toggle in the menu\n\nToo deep.\n\n- Considered: a key\n\n"
        "Taken from `HANDOFF.md`.\n\n- part_of [[Dark mode]]\n"
    )
    (link,) = parse_note(second.content, path="n.md").links
    assert (link.kind, link.target) == ("part_of", "Dark mode")


def test_a_name_that_no_link_can_hold_is_not_linked_to() -> None:
    decisions = [
        migrated(f"## Feature\n{name}\n## Decisions\n- Yes\n").notes[1]
        for name in ("Port it to C#", "Menu | bar", "a]] b")
    ]

    assert [parse_note(decision.content, path="n.md").links for decision in decisions] == [
        (),
        (),
        (),
    ]


def test_a_decision_that_is_said_twice_is_one_note_with_both_reasons() -> None:
    found = migrated("## Decisions\n### Use Stripe\nCheap.\n### use stripe!\nKnown.\n")

    (decision,) = found.notes
    assert decision.content.startswith("# Use Stripe\n\nCheap.\n\nKnown.\n\n")


def test_a_decision_that_is_called_like_the_feature_has_a_title_of_its_own() -> None:
    found = migrated("## Feature\nUse Stripe\n## Decisions\n- Use stripe\n")

    assert [piece.title for piece in found.notes] == ["Use Stripe", "Use stripe (decision)"]


def test_a_long_first_line_is_cut_in_the_title_and_whole_in_the_note() -> None:
    text = "We take the queue of the database " * 5

    (decision,) = migrated(f"## Decisions\n- {text}\n").notes

    assert len(decision.title) <= TITLE_CHARS_MAX + 1
    assert decision.title.endswith("of the…")
    assert text.strip() in decision.content


def test_what_is_not_understood_is_kept_as_it_stands() -> None:
    text = "Hi.\n\n## Gotchas\nRun `make`.\r\n\n```sh\n# Blockers\n```\n\n### Also\n\n| a | b |\n"

    found = migrated(text)

    assert found.notes == ()
    assert found.leftover_text == f"What `HANDOFF.md` says besides, as it stands there.\n\n{text}"


def test_a_heading_over_nothing_is_no_note() -> None:
    assert migrated("# HANDOFF\n\n## Active Feature\nDark mode\n").leftover_text == ""
    assert plan_migration(NOTHING, "h.md") == Migration((), "", "", "")


@pytest.mark.parametrize(
    "name", ["boxes.markdown", "tables.markdown", "short.markdown", "early.markdown"]
)
def test_every_item_of_a_file_is_in_some_note(name: str) -> None:
    handoff = parse_handoff((FILES / name).read_bytes().decode())

    found = plan_migration(handoff, name)

    text = "\n".join([*(piece.content for piece in found.notes), found.leftover_text])
    items = [*(s.text for s in handoff.progress), *handoff.decisions, *handoff.blockers]
    items += [*handoff.next_steps, *(section.text for section in handoff.other)]
    missing = [
        line
        for item in items
        for line in item.splitlines()
        if line.strip() and line.strip() not in text
    ]
    assert missing == []


texts = st.text(
    st.sampled_from(" \n\t-#*`[]()|~:.x1Abé\udc80\u202e") | st.characters(codec="utf-8")
)
handoffs = st.builds(
    HandoffContent,
    texts.map(lambda text: " ".join(text.split())),
    st.lists(st.builds(HandoffStep, texts, st.booleans()), max_size=3).map(tuple),
    *[st.lists(texts, max_size=4).map(tuple)] * 3,
    st.lists(st.builds(HandoffSection, texts, st.integers(0, 6), texts), max_size=3).map(tuple),
)


@given(handoffs)
def test_no_two_notes_of_a_file_could_be_taken_for_one(handoff: HandoffContent) -> None:
    found = plan_migration(handoff, "HANDOFF.md")

    titles = [piece.title for piece in found.notes]
    assert len({canonical_title(title) for title in titles}) == len(titles)
    assert all(title.strip() and "\n" not in title for title in titles)
    assert all(title.encode() for title in titles), "no halves of characters"
