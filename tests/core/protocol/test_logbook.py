"""The region of a logbook that is ours, and all the rest, which is not."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.ids import SessionId
from interlock.core.protocol import logbook
from interlock.core.protocol.logbook import END_MARKER, begin_marker, find_region, with_region

SESSION = SessionId("ses_0000000000000001")


def region(version: int, content: str = "- a line") -> str:
    return f"{begin_marker(SESSION, version)}\n\n{content}\n\n{END_MARKER}"


TEXTS = st.lists(
    st.sampled_from(
        ["# A title", "", "text", "\r", begin_marker(SESSION, 1), END_MARKER, "\udc80", "## What"]
    )
).map("\n".join)


@given(TEXTS)
def test_whatever_people_wrote_stays_byte_for_byte(text: str) -> None:
    before = find_region(text)
    once = with_region(text, region(2))
    found = find_region(once)

    assert found is not None
    assert (found.version, found.text) == (2, region(2))
    outside = once.replace(region(2), "", 1)
    people = text.replace(text[before.start : before.end], "", 1) if before else text
    assert outside.replace("\n", "") == people.replace("\n", "")
    assert with_region(once, region(3)) == once.replace(region(2), region(3), 1)


def test_a_region_whose_lines_are_gone_is_put_on_top_once() -> None:
    made = with_region(logbook.empty_logbook("2026-11-16", 1), region(1))
    for broken in (made.replace(END_MARKER, "<!-- -->"), made.replace("<!-- interlock: w", "<!--")):
        again = with_region(with_region(f"{broken}mine\n", region(2)), region(3))

        assert again.startswith(f"# 2026-11-16, session 01\n\n{region(3)}\n")
        assert again.endswith("mine\n")
        assert "- a line" in again.replace(region(3), "")


def test_an_untouched_logbook_is_recognised() -> None:
    empty = logbook.empty_logbook("2026-11-16", 1)
    made = with_region(empty, region(1))

    assert logbook.is_untouched(empty)
    assert logbook.is_untouched(made)
    assert logbook.is_untouched(with_region(made, region(7, "- another")))
    assert logbook.is_untouched("# as it once was\n\n- Profile: strict\n" + logbook.HEADINGS)
    for touched in (f"{made}mine\n", f"mine\n{made}", made.replace("done\n", "done\n\nmine\n")):
        assert not logbook.is_untouched(touched)
    assert logbook.text_under(made, logbook.DONE_HEADING) == ""
    filled = made.replace("done\n", "done\n\nThe parser.\n\n### More\n\nOf it.\n")
    assert logbook.text_under(filled, logbook.DONE_HEADING) == "The parser.\n\n### More\n\nOf it."


def test_only_what_people_left_empty_is_filled() -> None:
    done, is_open = logbook.DONE_HEADING, logbook.OPEN_HEADING
    text = with_region(logbook.empty_logbook("2026-11-16", 1), region(1, done))
    filled = logbook.with_text_under(text, done, ["the parser", "its tests"])

    assert logbook.text_under(filled, done) == "- the parser\n- its tests"
    assert filled.endswith(f"- its tests\n\n{is_open}\n"), "outside of our region"
    assert logbook.with_text_under(filled, done, ["another"]) == filled
    assert logbook.with_text_under(text, done, []) == text
    gone = logbook.with_text_under("# a", is_open, ["b"])
    assert gone == f"# a\n\n{is_open}\n\n- b\n"
