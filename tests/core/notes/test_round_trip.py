"""A file is the same after it was read, whatever it holds; a new note says what was meant."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.core.notes import grammar
from interlock.core.notes.note import NoteLink, Observation

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
PIECES = [
    *(
        "---\n",
        "---",
        "...",
        "\n",
        "\r\n",
        "\r",
        " ",
        "    ",
        "\t",
        "- ",
        "* ",
        "1. ",
        "> ",
        "#",
        "# ",
    ),
    *(
        "```",
        "~~~",
        "`",
        "``",
        "<!--",
        "-->",
        "[[",
        "]]",
        "[",
        "]",
        "(",
        ")",
        "|",
        "^",
        "\\",
        "===\n",
    ),
    *(
        "a",
        "fact",
        "[fact] ",
        "[x] ",
        "[[A]]",
        " #tag",
        "title: ",
        "- [fact] b (c)\n",
        "- d [[E]]\n",
    ),
    *("\0", "\ufeff", "\u2028", "\udc80", "д", "日", "🚀", '"', ":", "&a", "*a"),
]

scripts = st.text(st.sampled_from([*"abcXYZ019_", *"абв", *"日志", *"हिन्दी", *"سجل"]), min_size=1)
plain = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="[]()#`\\<\x85"),
    max_size=20,
).map(lambda text: " ".join(text.split()))
some = plain.filter(bool)
tags = st.lists(scripts.filter(lambda tag: tag[0].isalpha()), max_size=3, unique=True)
categories = some.filter(
    lambda text: text[0] not in "!^" and not (len(text) == 1 and text.isascii())
).filter(lambda text: ":" not in text and text.count("-") < 2)


def written(observation: Observation) -> str:
    context = f" ({observation.context})" if observation.context else ""
    return f"- [{observation.category}] {observation.text}{context}"


def written_link(link: NoteLink) -> str:
    is_word = all(mark.isalnum() or mark in "_-" for mark in link.kind)
    # Alone, a hyphen would begin a list in the list.
    kind = link.kind if is_word and link.kind != "-" else f'"{link.kind}"'
    context = f" ({link.context})" if link.context else ""
    return f"- {kind} [[{link.target}]]{context}"


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    found = draw(tags)
    text = " ".join([draw(some), *(f"#{tag}" for tag in found)])
    return Observation(draw(categories), text, tuple(found), draw(plain), 1)


names = some.filter(lambda text: not set(text) & set("|#^[]"))
kinds = scripts | some.filter(lambda text: '"' not in text)
relations = st.builds(NoteLink, kinds, names, plain, st.just(1))


@pytest.mark.invariant("notes-byte-for-byte")
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_file_of_the_corpus_comes_back_byte_for_byte(path: Path) -> None:
    content = path.read_bytes()
    note = grammar.parse_note(content.decode("utf-8", "surrogateescape"), path=path.name)

    assert note.text.encode("utf-8", "surrogateescape") == content


@pytest.mark.invariant("notes-byte-for-byte")
@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_anything_that_looks_like_markdown_comes_back(text: str) -> None:
    note = grammar.parse_note(text, path="a.md")
    lines = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    assert note.text == text
    assert all(
        1 <= seen.line <= lines for seen in (*note.observations, *note.links, *note.headings)
    )
    assert all(seen.category and seen.text for seen in note.observations)
    assert all(link.kind and link.target for link in note.links)


def test_a_huge_file_comes_back_and_is_read_to_its_end() -> None:
    text = "".join(f"## {n}\n- [fact] number {n} #n{n}\n- [[N{n}]]\n\n" for n in range(20_000))

    note = grammar.parse_note(text, path="a.md")

    assert note.text == text
    assert len(note.observations) == len(note.links) == len(note.headings) == 20_000
    assert note.links[-1].line == 79_999


@given(observations())
def test_an_observation_that_is_written_is_read_back(wanted: Observation) -> None:
    found = grammar.parse_note(written(wanted), path="a.md").observations

    assert found == (wanted,)


@given(relations)
@example(NoteLink("-", "0", "", 1))
@example(NoteLink("--", "0", "", 1))
def test_a_relation_that_is_written_is_read_back(wanted: NoteLink) -> None:
    assert grammar.parse_note(written_link(wanted), path="a.md").links == (wanted,)


texts = st.text(st.characters(exclude_categories=["Cs"]))
titles = texts.filter(lambda text: bool(text.strip()))
contents = st.text().filter(lambda text: not text.startswith(("---", "\ufeff")))


parts = st.fixed_dictionaries(
    {
        "title": titles,
        "type": titles,
        "content": contents,
        "tags": st.lists(scripts, max_size=3, unique=True),
        "metadata": st.dictionaries(texts, texts | st.lists(texts, max_size=3), max_size=3),
        "permalink": st.just("") | titles,
    }
)


@given(parts)
def test_a_new_note_has_the_parts_it_was_made_of(wanted: dict[str, Any]) -> None:
    composed = grammar.compose_note(**wanted)

    assert isinstance(composed, grammar.ComposedNote)
    note = grammar.parse_note(composed.text, path="other.md")
    assert grammar.parse_note(composed.text, path="other.md", front=composed.front) == note
    assert note.title == wanted["title"]
    assert note.type == wanted["type"]
    assert note.permalink == wanted["permalink"]
    assert note.body == wanted["content"]
    assert note.tags[: len(wanted["tags"])] == tuple(wanted["tags"])
    own = {"title", "type", "tags", "permalink"}
    assert {key: note.front.values[key] for key in note.front.values if key not in own} == {
        key: value for key, value in wanted["metadata"].items() if key not in own
    }
