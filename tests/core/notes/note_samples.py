"""Notes for tests, made from their parts and not by the grammar."""

from hypothesis import strategies as st

from interlock.core.notes.note import Frontmatter, Metadata, Note, NoteLink, Observation


def note(
    title: str = "Use SQLite",
    type_: str = "note",
    *,
    values: Metadata | None = None,
    body: str = "",
    tags: int = 3,
    observations: int = 4,
    relations: int = 3,
    prose_links: int = 0,
    problem: str = "",
) -> Note:
    return Note(
        front=Frontmatter("", values or {}, problem),
        body=body,
        title=title,
        type=type_,
        tags=tuple(f"tag{n}" for n in range(tags)),
        permalink="",
        observations=tuple(Observation("fact", "x", (), "", n) for n in range(observations)),
        links=(
            *(NoteLink("relates_to", f"T{n}", "", n) for n in range(relations)),
            *(NoteLink("links_to", f"P{n}", "", n) for n in range(prose_links)),
        ),
        headings=(),
    )


any_text = st.text(st.characters())  # surrogates too: files are not always UTF-8
awkward = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "AND",
                "OR",
                "NOT",
                "NEAR(",
                ")",
                '"',
                "''",
                "*",
                "^",
                "-",
                "+",
                ":",
                "title:",
                "{",
                "}",
            ]
        ),
        st.sampled_from(
            ["\0", "\\", ",", "a", "b", "é", "日本", "ไทย", "ё", "\ud800", "😀", " ", "_"]
        ),
        any_text,
    )
).map("".join)
