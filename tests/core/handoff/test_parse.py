"""Hand-off files: read whatever their form, and nothing of them lost."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.handoff.parse import HandoffContent, HandoffSection, HandoffStep, parse_handoff

FILES = Path(__file__).parent / "samples"


def handoff(name: str) -> HandoffContent:
    return parse_handoff((FILES / name).read_bytes().decode())


def done(*texts: str) -> tuple[HandoffStep, ...]:
    return tuple(HandoffStep(text, is_done=True) for text in texts)


def told(*texts: str) -> tuple[HandoffStep, ...]:
    """Nobody said whether that is done, or anything to be done at all."""
    return tuple(HandoffStep(text, is_done=None) for text in texts)


def to_do(*texts: str) -> tuple[HandoffStep, ...]:
    return tuple(HandoffStep(text, is_done=False) for text in texts)


def test_a_file_with_checkboxes_and_sections_of_its_own() -> None:
    read = handoff("boxes.markdown")

    assert read.feature == "Checkout with saved cards (branch checkout)"
    assert read.progress == (
        *done("Schema for cards"),
        *to_do("Form\n  - validate the number"),
        *done("mask it", "Decline page", "Old flow"),
        *to_do("Receipts"),
        *done("Ask legal"),
    )
    assert read.decisions == (
        "Tokens, not numbers because of PCI",
        "Use Stripe",
        "2026-11-02 No PayPal\nToo slow.",
    )
    assert read.blockers == ()
    assert read.next_steps == ("Finish the form",)
    assert [section.heading for section in read.other] == [
        *("", "HANDOFF", "Active Feature", "1. Progress", "Gotchas"),
        *("Session History", "Session 1", "Next Steps"),
    ]
    assert read.other[-1] == HandoffSection("Next Steps", 4, "- stale\n")
    assert "# Blockers\nmake up" in read.other[4].text


def test_a_file_with_tables_underlined_headings_and_line_ends_of_windows() -> None:
    read = handoff("tables.markdown")

    assert read == HandoffContent(
        feature="search in any script",
        progress=(
            *done("Index | words; Owner: Bo; Status: ✅"),
            *to_do("Query; Owner: Al; Status: In progress"),
            *done("Excerpt; Status: **Done**"),
        ),
        decisions=("unicode61, not trigram (smaller)",),
        blockers=("waiting for the key of the staging machine",),
        next_steps=("measure it", "write the guide"),
        other=(HandoffSection("HANDOFF", 1, "\r"),),
    )


def test_a_short_file_of_paragraphs() -> None:
    assert handoff("short.markdown") == HandoffContent(
        feature="Dark mode",
        progress=done("Colours are variables now.", "The toggle is stored per user."),
        decisions=(),
        blockers=(),
        next_steps=("Ask design about contrast.",),
        other=(),
    )


def test_a_long_file_that_has_grown() -> None:
    read = handoff("early.markdown")

    assert read.feature == "Stock reservations across warehouses"
    assert read.progress[0] == HandoffStep("Table `reservation` with expiry", is_done=True)
    assert sum(step.is_done is True for step in read.progress) == 13
    assert read.progress[10:] == (
        *to_do(
            "Transfers between warehouses\n    - draft of the state machine in `transfer.py`"
            "\n    - open: who cancels?",
            "Partial reservations",
        ),
        *done("Backorders (read only)"),
        *told("Phase 3: Reservation priorities", "Phase 3: Forecasts"),
        *done("No staging database", "Tell sales about backorders"),
    )
    assert [decision.partition("\n")[0] for decision in read.decisions] == [
        "D1: Reservations expire by database time",
        "D2: One row per order line",
        "D3: No message broker yet",
    ]
    assert "- Considered: a lease service" in read.decisions[0]
    assert read.blockers == (
        "Warehouse 7 sends ids with leading zeros",
        "Who owns the registry? Asked Kim on Monday, no answer.",
    )
    assert read.next_steps == (
        "Decide who cancels a transfer",
        "Finish partial reservations",
        "Upgrade the driver\n   ```sh\n   # Next Steps\n   pip install driver==4\n   ```",
    )
    other = {section.heading: section.text for section in read.other}
    assert "| `RESERVATION_MINUTES` | 30 |" in other["Environment"]
    assert "lock(4711)  # do not change" in other["Gotchas"]
    assert other["Next Steps"].strip().endswith("again")  # of a session long ago
    assert "Do them in this order:" in [section.text for section in read.other]


@pytest.mark.parametrize(
    "heading",
    [
        *(
            "# Blockers",
            "###### BLOCKERS ######",
            "## **Blockers**",
            "## 3. Blockers",
            "## 3) blockers",
        ),
        *("## Open Blockers", "## 🚧 Blockers:", "**Blockers**", "**Blockers:**", "__Blockers__:"),
        *(
            "Blockers\n========",
            "Blockers:",
            "## Blockers & risks",
            "## Blockers (2)",
            "## _Blockers_",
        ),
        *("## Current Blockers", "## Blocked on", "## [Blockers]"),
    ],
)
def test_a_heading_is_known_however_it_is_written(heading: str) -> None:
    read = parse_handoff(f"# T\n\n{heading}\n\n- the key\n\n# Else\n\n- x\n")

    assert read.blockers == ("the key",)
    assert read.other == (
        HandoffSection("T", 1, ""),
        HandoffSection("Else", 1, "\n- x\n"),
    )


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("- [x] a", HandoffStep("a", is_done=True)),
        ("1. [X] a", HandoffStep("a", is_done=True)),
        ("* [ ] a", HandoffStep("a", is_done=False)),
        ("- [~] a", HandoffStep("a", is_done=False)),
        ("- ✅ a", HandoffStep("a", is_done=True)),
        ("- ☑️ a", HandoffStep("a", is_done=True)),
        ("- ⬜ a", HandoffStep("a", is_done=False)),
        ("- ~~a~~", HandoffStep("a", is_done=True)),
        ("- a (done)", HandoffStep("a (done)", is_done=True)),
        ("- DONE: a", HandoffStep("DONE: a", is_done=True)),
        ("- a, almost done", HandoffStep("a, almost done", is_done=None)),
        ("a", HandoffStep("a", is_done=None)),
        ("| a |", HandoffStep("a", is_done=None)),
    ],
)
def test_whether_a_step_is_done_is_seen(line: str, step: HandoffStep) -> None:
    assert parse_handoff(f"## Progress\n{line}\n").progress == (step,)


def test_a_part_of_the_progress_that_lists_nothing_is_a_step_itself() -> None:
    read = parse_handoff("## Progress\n### Phase 3\n### Phase 4\n- begun\n")

    assert read.progress == told("Phase 3", "Phase 4: begun")


def test_what_a_heading_says_after_a_colon_or_a_dash_is_kept() -> None:
    read = parse_handoff(
        "## **Active Feature:** Dark mode\n\nFor the night.\n"
        "## Decision: Use variables\nNot classes.\n### Keep the toggle\n"
        "## Blockers: Kim is away\n## Next Steps - this week\n- Ask\n## Progress \u2014 80%\n"
    )

    assert read == HandoffContent(
        feature="Dark mode",
        progress=told("80%"),
        decisions=("Use variables\nNot classes.", "Keep the toggle"),
        blockers=("Kim is away",),
        next_steps=("this week: Ask",),
        other=(HandoffSection("Dark mode", 3, "\nFor the night."),),
    )
    assert parse_handoff("## Blockers: none\n").blockers == ()


def test_a_part_of_the_blockers_that_lists_nothing_is_one_itself() -> None:
    read = parse_handoff("## Blockers\n### Kim is away\n## Next Steps\n### Ask\n\nin writing\n")

    assert (read.blockers, read.next_steps) == (("Kim is away",), ("Ask: in writing",))


def test_only_the_first_feature_is_the_active_one() -> None:
    read = parse_handoff("## Feature\nfirst\n## Current Feature\nsecond\n")

    assert read.feature == "first"
    assert read.other == (HandoffSection("Current Feature", 2, "second\n"),)


def test_what_is_not_understood_is_kept_as_it_stands() -> None:
    text = "intro\n\n## Notes\n\n- a\n\tb  \n\n| t |\n\n## Notes\n~~~\n## Progress\n~~~\n"

    assert parse_handoff(text).other == (
        HandoffSection("", 0, "intro\n"),
        HandoffSection("Notes", 2, "\n- a\n\tb  \n\n| t |\n"),
        HandoffSection("Notes", 2, "~~~\n## Progress\n~~~\n"),
    )


def test_an_empty_file_says_nothing() -> None:
    assert parse_handoff("") == HandoffContent("", (), (), (), (), ())


lines = st.one_of(
    st.sampled_from(
        ["## Progress", "### Completed", "# Decisions", "**Blockers:**", "TODO", "----", "====", ""]
    ),
    st.sampled_from(
        ["```", "~~~", "- [x] done1", "  - nested2", "| a3 | b4 |", "|---|---|", "---"]
    ),
    st.sampled_from(
        ["## Active Feature", "Next Steps: five5", "para6", "   more7", "# Older", "1. eight8"]
    ),
    st.text(st.characters(), max_size=12),
)


@given(st.lists(lines, max_size=25))
def test_any_file_is_read_and_its_figures_are_kept(parts: list[str]) -> None:
    text = "\n".join(parts)

    read = parse_handoff(text)

    # What heads a table is said with its rows, and there may be none.
    said = text.replace("| a3 | b4 |\n|---|---|", "")
    for figure in re.findall(r"[a-z]+[1-8]\b", said, re.ASCII):
        assert figure in repr(read)


@pytest.mark.parametrize(
    "line", ["* a", "**", "*_`", "#", "# ", "| ", "1.", " ", "\t", "- [", "~~", "a: ", "(", "[x] "]
)
def test_a_huge_line_takes_no_huge_time(line: str) -> None:
    found = parse_handoff(f"## Progress\n{line * 40_000}\n## {line * 40_000}\n- {line * 40_000}x\n")

    assert "x" in str(found), "the last of it is there"
