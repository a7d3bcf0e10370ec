"""What counts as an observation, a relation, a link, a tag and a heading, and what does not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from interlock.core.notes import grammar, markdown_blocks
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.note import Heading, Note, NoteLink, Observation


def parsed(text: str) -> Note:
    return grammar.parse_note(text, path="folder/A note.md")


def observed(line: str) -> tuple[str, str, tuple[str, ...], str]:
    (found,) = parsed(line).observations
    return found.category, found.text, found.tags, found.context


def test_an_observation_has_a_category_a_text_tags_and_a_context() -> None:
    assert parsed("\n- [fact] Text #one #two (why)\n").observations == (
        Observation("fact", "Text #one #two", ("one", "two"), "why", 2),
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- [a b] text", ("a b", "text", (), "")),
        ("* [ fact ] text ", ("fact", "text", (), "")),
        ("+ [fact]\ttext", ("fact", "text", (), "")),
        ("12) [fact] text", ("fact", "text", (), "")),
        ("- [fact] f(x)", ("fact", "f(x)", (), "")),
        ("- [fact] a (b) (c (d))", ("fact", "a (b)", (), "c (d)")),
        ("- [fact] a (b) c", ("fact", "a (b) c", (), "")),
        ("- [fact] a b)", ("fact", "a b)", (), "")),
        ("- [fact] (a)", ("fact", "(a)", (), "")),
        ("- [fact] a ()", ("fact", "a ()", (), "")),
        ("- [fact] a (see `)`)", ("fact", "a", (), "see `)`")),
        ("- [fact] see [a](b)", ("fact", "see [a](b)", (), "")),
        ("- [事] text", ("事", "text", (), "")),
        ("- [fact] #a#b #c, #d. #e/f-g_h #-i #1 #_", ("fact", "", ("a", "c", "d", "e/f-g_h"), "")),
        ("- [fact] #a `#b` [[C #d]] \\#e http://x/#f g#h", ("fact", "", ("a",), "")),
        ("- [fact] #a #a #A", ("fact", "#a #a #A", ("a", "A"), "")),
        ("- text #a (b)", ("Note", "text #a", ("a",), "b")),
        ("- #a", ("Note", "#a", ("a",), "")),
        ("- [a](b) #c", ("Note", "[a](b) #c", ("c",), "")),
    ],
)
def test_a_list_item_is_an_observation(
    line: str, expected: tuple[str, str, tuple[str, ...], str]
) -> None:
    category, text, tags, context = observed(line)

    assert (category, text if expected[1] else "", tags, context) == expected


@pytest.mark.parametrize(
    "line",
    [
        *(f"- [{mark}] text #tag" for mark in " xX-/>?!*<i1"),
        *("- [ ]", "- []", "- [fact]", "- [fact]text", "- [fact]: text", "- [fact](text)"),
        *("- [a][b] c", "- [!note] a", "- [^1] a", "- [[a]] b", "- [a (b)] c", "- [a [b] c] d"),
        *(
            "- text",
            "- #1",
            "- \\[fact] a",
            "- `[fact] a`",
            "[fact] a",
            "-[fact] a",
            "> - [fact] a",
        ),
        *(
            "    - [fact] a",
            "\t- [fact] a",
            "- [  ] a",
            "text #tag",
            "# [fact] a",
            "- a\n  [fact] b",
        ),
        *("- uses [[A]] (#tag)", "1234567890. [fact] a", "text\n2. [fact] a"),
    ],
)
def test_this_is_no_observation(line: str) -> None:
    assert parsed(line).observations == ()


@pytest.mark.parametrize(
    ("line", "kind", "target", "context"),
    [
        ("- uses [[A]]", "uses", "A", ""),
        ("* depends-on [[A]] (b (c))", "depends-on", "A", "b (c)"),
        ("1. зависит_от [[Хранилище Я]] ", "зависит_от", "Хранилище Я", ""),
        ('- "is part of" [[A|B]]', "is part of", "A", ""),
        ("- [[A]]", "links_to", "A", ""),
        ("- - [[A]]", "links_to", "A", ""),  # a list in the list
        ('- "-" [[A]]', "-", "A", ""),
        ("- [[A]] (b)", "links_to", "A", "b"),
        ("  - 2nd [[A#B|C]]", "2nd", "A", ""),
    ],
)
def test_a_list_item_is_a_relation(line: str, kind: str, target: str, context: str) -> None:
    assert parsed(line).links == (NoteLink(kind, target, context, 1),)
    assert parsed(line).observations == ()


@pytest.mark.parametrize(
    "line",
    [
        *(
            "- see also [[A]]",
            "- uses [[A]].",
            "- uses [[A]](b)",
            "- uses [[A]] (b) c",
            "- uses: [[A]]",
        ),
        *('- "uses [[A]]', '- "" [[A]]', "- 'is part of' [[A]]", "- uses[[A]]", "- uses ![[A]]"),
        *("- [ ] uses [[A]]", "- [fact] uses [[A]]", "uses [[A]]", "> - uses [[A]]", "# [[A]]"),
        *(
            "| [[A]] |",
            "- a\n  uses [[A]]",
            "- `x` [[A]]",
            "- uses [[A]] ()",
            "[^1]: [[A]]",
            "==[[A]]==",
        ),
    ],
)
def test_this_is_a_link_and_no_relation(line: str) -> None:
    assert [(link.kind, link.target, link.context) for link in parsed(line).links] == [
        ("links_to", "A", "")
    ]


def test_of_several_links_none_is_a_relation() -> None:
    assert [(link.kind, link.target) for link in parsed("- uses [[A]] and [[B]]").links] == [
        ("links_to", "A"),
        ("links_to", "B"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("[[]]", "[[ ]]", "[[|a]]", "[[#a]]", "[[^a]]", "[[a", "[a]]", "[[a\nb]]", "[[[1], [2]]]"),
        *(f"[[{'a' * 301}]]", "`[[a]]`", "\\[[a]]", "[\\[a]]", "<!-- [[a]] -->", "```\n[[a]]\n```"),
        *(
            "    [[a]]",
            "a\n\n\n    [[a]]",
            "> ```\n> [[a]]",
            "- ```\n  [[a]]",
            "`a\n[[a]]`",
            "~~~\n[[a]]",
        ),
        *(
            "a\n<!--\n\n[[a]]\n\n",
            "- <!--\n  [[a]]",
            "````\n```\n[[a]]",
            "~~~\n```\n[[a]]",
            "```\n```x\n[[a]]",
        ),
        *(
            "---\na: '[[a]]'\n---\n",
            "---\n# [[a]]\n- [\n---\n",
            "# a\n    [[a]]",
            "``` `\n```\n[[a]]",
        ),
    ],
)
def test_there_is_no_link_in_it(text: str) -> None:
    assert parsed(text).links == ()


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"[[{'a' * 300}]]",
            "``[[a]]`",
            "\\\\[[a]]",
            "<!-- [[a]]"[5:],
            "a <!-- [[a]]",
            "a\n    [[a]]",
        ),
        *(
            "> ```\n[[a]]",
            "- ```\n[[a]]",
            "```\n```\n[[a]]",
            "`a\n\n[[a]]`",
            "- <!--\n\n[[a]]",
            "~~~\n~~~~\n[[a]]",
        ),
        *(
            "```a`b\n[[a]]",
            "- a\n\n        [[a]]",
            "<!-- --> [[a]]",
            "<!-->[[a]]",
            "```\n   ```\n[[a]]",
        ),
    ],
)
def test_there_is_a_link_in_it(text: str) -> None:
    assert [link.target[0] for link in parsed(text).links] == ["a"]


def test_lines_are_those_of_the_file() -> None:
    note = parsed("---\r\na: b\r\n---\r\n# H\r\n\r- [fact] a\n> \n[[B]]")

    assert [heading.line for heading in note.headings] == [4]
    assert [seen.line for seen in note.observations] == [6]
    assert [link.line for link in note.links] == [8]


def test_headings_are_those_that_divide_the_note() -> None:
    note = parsed("# A #\n> # B\n- # C\n\nD\nd\n---\n    # E\n```\n# F\n```\n#G\n## \n")

    assert note.headings == (Heading(1, "A", 1), Heading(2, "D d", 5), Heading(2, "", 13))


def test_a_list_item_with_nothing_in_it_ends_at_a_blank_line() -> None:
    assert parsed("-\n\n  # A\n").headings == (Heading(1, "A", 3),)
    assert parsed("-\n  # A\n").headings == ()
    assert parsed("- >\n\n  # A\n").headings == ()


@pytest.mark.parametrize(
    ("text", "title", "kind", "tags", "permalink"),
    [
        ("", "A note", "note", (), ""),
        ("# Heading\n", "A note", "note", (), ""),
        (
            "---\ntitle: T\ntype: task\npermalink: p/q\ntags: 'a, #b,'\n---\n",
            "T",
            "task",
            ("a", "b"),
            "p/q",
        ),
        (
            "---\ntitle: [T]\ntype:\ntags: [a, {b: c}, '#d', '']\n---\n",
            "A note",
            "note",
            ("a", "d"),
            "",
        ),
        ("---\ntags: {a: b}\n---\n- [fact] c #d\n- #d #e\n", "A note", "note", ("d", "e"), ""),
        ("---\ntitle: 007\ntags: [d, 1]\n---\n- #e #d\n", "007", "note", ("d", "1", "e"), ""),
        ("---\ntitle: T\ntitle: T\n---\n", "A note", "note", (), ""),
    ],
)
def test_what_the_frontmatter_does_not_say_has_a_default(
    text: str, title: str, kind: str, tags: tuple[str, ...], permalink: str
) -> None:
    note = parsed(text)

    assert (note.title, note.type, note.tags, note.permalink) == (title, kind, tags, permalink)


@pytest.mark.parametrize(
    ("path", "title"), [("a/b.md", "b"), ("b.MD", "b"), ("a.b/c", "c"), ("x.y.md", "x.y"), ("", "")]
)
def test_a_note_is_named_after_its_file(path: str, title: str) -> None:
    assert grammar.parse_note("", path=path).title == title


def composed(content: str, title: str = "new", **parts: Any) -> str:
    made = grammar.compose_note(title=title, content=content, **parts)
    assert isinstance(made, grammar.ComposedNote)
    return made.text


def test_a_new_note_begins_with_what_it_is() -> None:
    made = composed(
        "Text\n",
        "ADR-1: yes",
        tags=["#a", "b c", " "],
        metadata={"status": "on", "size": 1, "title": "not this"},
    )

    assert made == (
        '---\ntitle: "ADR-1: yes"\ntype: note\ntags:\n  - a\n  - b c\n'
        'status: "on"\nsize: 1\n---\nText\n'
    )


def test_frontmatter_of_the_content_is_kept_where_nothing_else_is_said() -> None:
    content = (
        "---\r\ntype: task # mine\r\ntitle: old\r\ndue: 2024-05-01\r\ntags: [x]\r\n---\r\nText\r\n"
    )

    assert composed(content, metadata={"by": "me"}) == (
        "---\r\ntype: task # mine\r\ntitle: new\r\ndue: 2024-05-01\r\ntags: [x]\r\nby: me\r\n"
        "---\r\nText\r\n"
    )
    assert "type: fact # mine" in composed(content, type="fact")


def test_frontmatter_of_the_content_that_cannot_be_read_is_not_lost() -> None:
    made = composed("---\n- a\n---\nText\n", "T")

    assert made == "---\ntitle: T\ntype: note\n---\n---\n- a\n---\nText\n"


def test_a_note_that_could_not_be_read_back_is_not_made() -> None:
    made = grammar.compose_note(title="T", content="", metadata={"a": "x" * 70_000})

    assert isinstance(made, UnwritableFrontmatter)


PREFIXES = ["", "", "> ", ">", "- ", "  ", "   ", "1. ", "* ", "   - ", "2) ", "> - ", "- > "]
LEAVES = [
    *(
        "text",
        "more words",
        "# head",
        "## h ##",
        "```",
        "````",
        "~~~",
        "``` py",
        "---",
        "===",
        "***",
    ),
    *("", "", "-", "- - -", "#", "#no", "1986. x", "1. y", "====", "*", "```x`"),
]
markdown = st.lists(
    st.tuples(st.lists(st.sampled_from(PREFIXES), max_size=2), st.sampled_from(LEAVES)).map(
        lambda drawn: "".join(drawn[0]) + drawn[1]
    ),
    max_size=8,
)


@given(markdown)
def test_blocks_are_those_of_commonmark(text: list[str]) -> None:
    tokens = MarkdownIt("commonmark").parse("\n".join(text))
    indents = {len(line) - len(line.lstrip(" >")) for line in text}
    if any(token.type == "code_block" for token in tokens) or max(indents, default=0) >= 4:
        return  # the one difference: items may be indented however deeply

    found = markdown_blocks.blocks(text)

    headings = [token for token in tokens if token.type == "heading_open" and not token.level]
    assert [(block.level, block.first) for block in found if block.kind == "heading"] == [
        (int(token.tag[1]), token.map[0]) for token in headings if token.map
    ]
    texts = [token.map for token in tokens if token.type in {"paragraph_open", "heading_open"}]
    assert {line for block in found for line in range(block.first, block.last + 1)} == {
        line for place in texts if place for line in range(*place)
    }


@pytest.mark.parametrize(
    "piece",
    [
        *("[[", "` `` ", "(", ")", "<!-- ", "- ", "> ", " #a", "\\`", "\n", "---\n", "\udc80"),
        *("[[a]] #b ", "- [fact] a (b\n", "`a\n", "> - ", "\t", "[", "1. ", "***", "a: &a\n"),
    ],
)
@pytest.mark.parametrize("before", ["", "- ", "- [fact] [[a]] #b ", "---\n", "> "])
def test_a_hostile_text_is_only_a_text(piece: str, before: str) -> None:
    text = before + piece * 5000

    assert parsed(text).text == text
