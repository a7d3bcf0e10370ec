"""Checkboxes and comments of a note, and that they bring nothing else onto a page."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.server.markdown import COMMENT_CHARS_MAX, inline_markdown, markdown, note_markdown

OPEN = '<input type="checkbox" disabled aria-label="not done">'
DONE = '<input type="checkbox" disabled checked aria-label="done">'


def laid_out(text: str) -> str:
    return note_markdown(text, title="", links={"A": "/a"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- [ ] a", f'<li class="task">{OPEN} a</li>'),
        ("- [x] a", f'<li class="task">{DONE} a</li>'),
        ("1. [x] a", f'<li class="task">{DONE} a</li>'),
        ("- [ ] a\n\n- [x] b", f'<li class="task">\n<p>{DONE} b</p>\n</li>'),
        ("- [ ] [[A]]", f'{OPEN} <a href="/a">A</a>'),
        ("- a\n  - [ ] b", f'<li class="task">{OPEN} b</li>'),
        ("> - [ ] a", OPEN),
        ("- [ ] <input autofocus>", f"{OPEN} &lt;input autofocus&gt;"),
    ],
)
def test_a_box_at_the_start_of_an_item_is_shown(text: str, expected: str) -> None:
    assert expected in laid_out(text)
    if "[[" not in text:
        assert expected in markdown(text)


@pytest.mark.parametrize(
    "text",
    [
        "[ ] a",
        "- a [ ] b",
        "- [ ]",
        "- [y] a",
        "- `[ ] a`",
        "- \\[ ] a",
        "- [x] a\n\n[x]: https://example.org",
        "    - [ ] a",
    ],
)
def test_what_is_no_box_stays_what_it_is(text: str) -> None:
    assert "<input" not in laid_out(text)
    assert "<input" not in inline_markdown(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n\n<!-- hidden -->\n\nb", "<p>a</p>\n<p>b</p>\n"),
        ("<!-- one\n\n# two\n-->\nb", "<p>b</p>\n"),
        ("a <!-- hidden --> b", "<p>a  b</p>\n"),
        ("a <!-- hidden -->", "<p>a </p>\n"),
        ("a <!-- hidden\nstill --> b", "<p>a  b</p>\n"),
        ("<!-- <script>hidden</script> -->", ""),
        ("- a\n  <!-- hidden -->\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"),
        ("> <!-- hidden -->\n> b", "<blockquote>\n<p>b</p>\n</blockquote>\n"),
    ],
)
def test_a_comment_is_not_shown(text: str, expected: str) -> None:
    assert laid_out(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<!-- never closed: kept",
        "a <!-- never closed: kept",
        "`<!-- kept -->`",
        "```\n<!-- kept -->\n```",
        "\\<!-- kept -->",
        "> <!-- kept\n\n-->",
        f"<!-- kept {'x' * COMMENT_CHARS_MAX} -->",
        "<!- kept ->",
    ],
)
def test_what_is_no_comment_is_shown_as_text(text: str) -> None:
    made = laid_out(text)

    assert "kept" in made
    assert "<!-" not in made


def test_cells_are_aligned_by_a_class_since_no_style_passes_the_content_policy() -> None:
    table = "| a | b | c |\n|:--|:-:|--:|\n| 1 | 2 | 3 |\n"

    for made in (laid_out(table), markdown(table)):
        assert "style=" not in made
        for tag in ("th", "td"):
            for side in ("left", "center", "right"):
                assert f'<{tag} class="{side}">' in made


def test_a_comment_in_what_an_agent_was_told_or_handed_in_is_shown() -> None:
    """Whoever grants an approval must see all of it."""
    for made in (markdown("<!-- hidden -->"), markdown("a <!-- hidden --> b")):
        assert "&lt;!-- hidden --&gt;" in made


@given(st.lists(st.sampled_from(["<!--", "-->", "- [ ] ", "[x] ", "\n", "> ", "<b>", "a", "`"])))
@example(["<!--", "-->", "<b>"])
def test_no_markup_of_a_note_passes_whatever_stands_around_it(parts: list[str]) -> None:
    made = laid_out("".join(parts))

    assert "<b>" not in made
    assert "<!--" not in made


@pytest.mark.parametrize(
    "text",
    [
        "<!--\n" * 18_000,
        "<!--\n" * 18_000 + "--> x",
        "<!--" * 2_400 + "\n",
        "\n".join(["<!--" * 2_400] * 10),
        "- [ ] a\n" * 4_900,
        "- <!--\n" * 13_000,
    ],
    ids=["blocks", "with an end", "in a line", "in lines", "boxes", "items"],
)
def test_what_never_ends_is_not_looked_through_to_the_end_again_and_again(text: str) -> None:
    """That would take minutes, and the test would time out."""
    assert laid_out(text)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((1, 2, 3), "234"),
        ((2, 3, 2), "232"),
        ((3, 1, 4), "223"),
        ((1, 2, 3, 4, 5, 6), "234566"),
    ],
)
def test_headings_leave_out_no_level_below_the_title_of_the_page(
    levels: tuple[int, ...], expected: str
) -> None:
    page = laid_out("\n\n".join(f"{'#' * level} It" for level in levels))

    assert "".join(re.findall(r"<h(\d)>It</h\1>", page)) == expected
