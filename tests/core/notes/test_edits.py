"""An edit changes its place and nothing else, or says why it does not."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.core.notes import frontmatter, grammar
from interlock.core.notes.edit_refusals import (
    AmbiguousSection,
    EditRefusal,
    EmptySearchText,
    FrontmatterConflict,
    MatchCountMismatch,
    NoSuchSection,
    TextNotFound,
)
from interlock.core.notes.edits import (
    REPORTED_LINES_MAX,
    Append,
    FindReplace,
    InsertAfter,
    InsertBefore,
    NoteEdit,
    Prepend,
    ReplaceSection,
    apply_edit,
)

NOTE = """---
title: T
---
# T

intro

## A

old

### Sub

sub

## B
b
```
## C
```

End
===

end
"""

PIECES = [
    *(
        "# A\n",
        "## B\n",
        "### C\n",
        "A\n===\n",
        "b\n---\n",
        "\n",
        "\n\n",
        "text\n",
        "- item\n",
        "> q\n",
    ),
    *(
        "```\n# A\n```\n",
        "---\ntitle: x\n---\n",
        "end",
        "  \n",
        "日志\n",
        "\udc80\n",
        "\ufeff",
        "---\n",
    ),
]


@st.composite
def notes(draw: st.DrawFn) -> str:
    text = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=10)))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"])))


contents = st.lists(st.sampled_from(["new", " ", "\n", "- x", "новое\r\n", "## N\n", "`"])).map(
    "".join
)


def edited(text: str, change: NoteEdit) -> str:
    result = apply_edit(text, change)
    assert isinstance(result, str), result
    return result


def test_append_comes_after_the_last_line() -> None:
    assert edited("a\n", Append("b")) == "a\nb\n"
    assert edited("a", Append("b\n")) == "a\nb\n"
    assert edited("a\r\nb", Append("c\nd")) == "a\r\nb\r\nc\r\nd\r\n"
    assert edited("", Append("a")) == "a\n"
    assert edited("---\na: b\n---", Append("c")) == "---\na: b\n---\nc\n"


def test_prepend_comes_after_the_frontmatter() -> None:
    assert edited(NOTE, Prepend("p")) == NOTE.replace("---\n# T", "---\np\n# T")
    assert edited("a", Prepend("b\r\n")) == "b\r\na"
    assert edited("\ufeffa\n", Prepend("b")) == "\ufeffb\na\n"
    assert edited("---\na: b\n---", Prepend("c")) == "---\na: b\n---\nc\n"


def test_what_is_put_before_an_underlined_heading_does_not_become_part_of_it() -> None:
    assert edited("T\n===\n", Prepend("p")) == "p\n\nT\n===\n"
    assert edited("# A\n\nB\n===\n", ReplaceSection("A", "a")) == "# A\na\n\nB\n===\n"
    assert edited("# A\nB\n===\n", ReplaceSection("A", "a")) == "# A\na\n\nB\n===\n"
    assert edited("# A\n***\nB\n===\n", ReplaceSection("A", "a")) == "# A\na\n\nB\n===\n"
    assert edited("a\n***\nB\n===\n", InsertBefore("B", "b")) == "a\n***\n\nb\n\nB\n===\n"


def test_what_is_found_is_replaced_in_every_place_that_was_expected() -> None:
    assert edited("a b a", FindReplace("a", "c", expected=2)) == "c b c"
    assert edited("a\r\nb\r\n", FindReplace("a\nb", "c\nd")) == "c\r\nd\r\n"
    assert apply_edit("a\r\nb a\r\na", FindReplace("a", "c")) == MatchCountMismatch(1, 3, (1, 2, 3))
    assert apply_edit("a", FindReplace("", "c")) == EmptySearchText()


def test_what_is_in_the_frontmatter_is_not_found() -> None:
    assert apply_edit(NOTE, FindReplace("title: T", "x")) == TextNotFound("title: T", "", 0)


def test_what_is_not_found_is_answered_with_the_line_that_is_most_like_it() -> None:
    text = "---\na: b\n---\n\n  The quick brown fox\nsomething else\n"

    assert apply_edit(text, FindReplace("\nThe quick brwn fox\nmore", "x")) == TextNotFound(
        "\nThe quick brwn fox\nmore", "  The quick brown fox", 5
    )


@pytest.mark.parametrize("section", ["A", "## A", " ##  A ", "a"])
def test_a_section_is_replaced_and_its_heading_and_subsections_stay(section: str) -> None:
    assert edited(NOTE, ReplaceSection(section, "new\n\n")) == NOTE.replace("old", "new")


def test_a_section_is_replaced_with_its_subsections_if_told() -> None:
    change = ReplaceSection("A", "new", with_subsections=True)

    assert edited(NOTE, change) == NOTE.replace("old\n\n### Sub\n\nsub", "new")


@pytest.mark.parametrize("content", ["## A\nnew", "\n## A ##\n\nnew\n", "A\n---\nnew"])
def test_a_heading_that_is_given_again_is_not_doubled(content: str) -> None:
    assert edited(NOTE, ReplaceSection("A", content)) == NOTE.replace("old", "new")


def test_another_heading_in_the_content_is_content() -> None:
    assert edited(NOTE, ReplaceSection("A", "# A\nnew")) == NOTE.replace("old", "# A\nnew")
    assert edited(NOTE, ReplaceSection("A", "x\n## A")) == NOTE.replace("old", "x\n## A")


def test_an_empty_section_is_filled_and_a_full_one_emptied() -> None:
    assert edited("# A\n# B\n", ReplaceSection("A", "a")) == "# A\na\n# B\n"
    assert edited("# A\n\n# B\n", ReplaceSection("A", "a")) == "# A\na\n\n# B\n"
    assert edited("# A", ReplaceSection("A", "a")) == "# A\na\n"
    assert edited("# A\n\na\n\n# B\n", ReplaceSection("A", "")) == "# A\n\n# B\n"
    assert edited("# A\na\n# B\n", ReplaceSection("A", "\n")) == "# A\n# B\n"
    assert edited("# A\n", ReplaceSection("A", "")) == "# A\n"


def test_the_last_section_ends_as_the_file_did() -> None:
    assert edited("# A\r\nold", ReplaceSection("A", "x\ny\n")) == "# A\r\nx\r\ny"
    assert edited(NOTE, ReplaceSection("End", "new")) == NOTE.replace("end\n", "new\n")


def test_text_is_inserted_before_a_section_or_after_all_of_it() -> None:
    assert edited(NOTE, InsertBefore("B", "new")) == NOTE.replace("## B", "new\n\n## B")
    assert edited(NOTE, InsertAfter("A", "new\n")) == NOTE.replace("## B", "new\n\n## B")
    assert edited(NOTE, InsertAfter("End", "new")) == NOTE + "\nnew\n"
    assert edited("# A\nb", InsertAfter("A", "c")) == "# A\nb\n\nc\n"
    assert edited("a\r\n# A\r\n", InsertBefore("A", "c\n")) == "a\r\n\r\nc\r\n\r\n# A\r\n"
    assert edited("# A\n", InsertBefore("A", "c")) == "c\n\n# A\n"
    assert edited("# A\n", InsertBefore("A", "\n")) == "# A\n"


def test_a_section_that_is_not_there_is_answered_with_those_that_are() -> None:
    assert apply_edit(NOTE, InsertAfter("Subs", "x")) == NoSuchSection(
        "Subs", ("# T", "## A", "### Sub", "## B", "# End"), "### Sub"
    )
    assert apply_edit(NOTE, ReplaceSection("### A", "x")) == NoSuchSection(
        "### A", ("# T", "## A", "### Sub", "## B", "# End"), "## A"
    )
    assert apply_edit("", InsertBefore("C", "x")) == NoSuchSection("C", (), "")


def test_a_heading_in_code_is_no_section() -> None:
    assert isinstance(apply_edit(NOTE, ReplaceSection("C", "x")), NoSuchSection)
    assert edited(NOTE, ReplaceSection("B", "x")) == NOTE.replace("b\n```\n## C\n```", "x")


def test_several_sections_of_one_name_are_told_apart_by_their_level_and_case() -> None:
    text = "---\na: b\n---\n# A\n1\n## A\n2\n# a\n3\n## A\n4\n"

    assert apply_edit(text, ReplaceSection("A", "x")) == AmbiguousSection(
        "A", 3, (4, 6, 10), is_distinct_by_level=False
    )
    assert apply_edit(text, ReplaceSection("## A", "x")) == AmbiguousSection(
        "## A", 2, (6, 10), is_distinct_by_level=False
    )
    other = text.replace("## A\n4", "### A\n4")
    assert apply_edit(other, ReplaceSection("A", "x")) == AmbiguousSection(
        "A", 3, (4, 6, 10), is_distinct_by_level=True
    )
    assert edited(text, ReplaceSection("# A", "x")) == text.replace("1", "x")
    assert edited(text, ReplaceSection("a", "x")) == text.replace("3", "x")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("", Append("---\na: b\n---\n")),
        ("text\n", Prepend("---\na: b\n---")),
        ("---\na: b\n", Append("---")),
        ("x\na: b\n---\n", FindReplace("x", "---")),
        ("\ufeff# A\n", InsertBefore("A", "---\n---")),
    ],
)
def test_an_edit_does_not_make_frontmatter(text: str, change: NoteEdit) -> None:
    assert apply_edit(text, change) == FrontmatterConflict()


@given(notes(), contents, st.sampled_from([Append, Prepend]))
def test_the_frontmatter_is_never_touched(
    text: str, content: str, make: type[Append | Prepend]
) -> None:
    after = apply_edit(text, make(content))
    assume(isinstance(after, str))
    assert isinstance(after, str)

    assert frontmatter.read(after)[0].values == frontmatter.read(text)[0].values
    assert after.startswith(frontmatter.read(text)[0].text)
    assert frontmatter.read(text)[1] in after


@given(notes(), contents, st.data())
def test_an_edit_of_a_section_leaves_what_is_above_and_below(
    text: str, content: str, data: st.DataObject
) -> None:
    note = grammar.parse_note(text, path="a.md")
    assume(note.headings)
    place = data.draw(st.integers(0, len(note.headings) - 1))
    heading = note.headings[place]
    whole = data.draw(st.booleans())
    section = f"{'#' * heading.level} {heading.text}"
    kind = data.draw(st.sampled_from(["before", "after", "replace"]))
    change: NoteEdit
    if kind == "replace":
        change = ReplaceSection(section, content, with_subsections=whole)
    else:
        change = (InsertBefore if kind == "before" else InsertAfter)(section, content)

    after = apply_edit(text, change)

    same = [
        other
        for other in note.headings
        if (other.level, other.text) == (heading.level, heading.text)
    ]
    if len(same) > 1:
        assert after == AmbiguousSection(
            section,
            len(same),
            tuple(other.line for other in same[:REPORTED_LINES_MAX]),
            len({other.level for other in same}) == len(same),
        )
        return
    if after == FrontmatterConflict():
        return
    assert isinstance(after, str)
    shown = text.splitlines(keepends=True)
    above = "".join(shown[: heading.line - (1 if kind == "before" else 0)])
    is_over = [
        other.line
        for other in note.headings[place + 1 :]
        if other.level <= heading.level or (kind == "replace" and not whole)
    ]
    start = heading.line if kind == "before" else is_over[0] if is_over else len(shown) + 1
    below = "".join(shown[start - 1 :])
    assert after.startswith(above) or not text.endswith(("\n", "\r"))
    assert after.endswith(below.removeprefix(frontmatter.BYTE_ORDER_MARK))
    assert content.strip().replace("\r\n", "\n").split("\n")[-1].strip() in after


@given(st.text(), st.text(), st.text())
def test_no_text_makes_an_edit_fail(text: str, section: str, content: str) -> None:
    for change in (
        Append(content),
        Prepend(content),
        FindReplace(section, content),
        ReplaceSection(section, content),
        InsertBefore(section, content),
        InsertAfter(section, content),
    ):
        assert isinstance(apply_edit(text, change), str | EditRefusal)
