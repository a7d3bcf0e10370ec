"""What a note says: its observations, links, tags and headings; and a new note from parts.

The grammar is Basic Memory's. Nothing in code, comments or frontmatter says anything.
"""

from collections.abc import Iterable, Sequence

from interlock.core.canonical import Json
from interlock.core.notes import frontmatter, inline_markup, markdown_blocks
from interlock.core.notes.frontmatter import UnwritableFrontmatter
from interlock.core.notes.note import Frontmatter, Heading, Metadata, Note, NoteLink, Observation

TYPE_DEFAULT = "note"


def parse_note(text: str, *, path: str) -> Note:
    """The note in `text`, which may be anything. `path` names it where it has no title."""
    front, body = frontmatter.read(text)
    before = len(markdown_blocks.end_offsets(front.text)) if front.text else 1
    observations: list[Observation] = []
    links: list[NoteLink] = []
    headings: list[Heading] = []
    for block in markdown_blocks.blocks(markdown_blocks.split(body)):
        line = block.first + before
        texts = block.texts
        if block.kind == "heading":
            headings.append(Heading(block.level, " ".join(texts).strip(), line))
        if block.kind == "item":
            found, said = inline_markup.parse_list_item(texts, line)
            links += said
            if found:
                observations.append(found)
        else:
            links += inline_markup.parse_links(texts, line)
    return Note(
        front=front,
        body=body,
        title=_text_value(front, "title") or _stem(path),
        type=_text_value(front, "type") or TYPE_DEFAULT,
        tags=_unique_tags(
            [*_parse_tags(front.values.get("tags")), *_observation_tags(observations)]
        ),
        permalink=_text_value(front, "permalink"),
        observations=tuple(observations),
        links=tuple(links),
        headings=tuple(headings),
    )


def render_note(note: Note) -> str:
    """The file, byte for byte as it was read."""
    return note.text


def compose_note(
    *,
    title: str,
    content: str,
    type: str = "",  # noqa: A002 (the word of the frontmatter)
    tags: Sequence[str] = (),
    metadata: Metadata | None = None,
    permalink: str = "",
) -> str | UnwritableFrontmatter:
    """A new note. What is not given is taken from frontmatter that `content` begins with.

    Unreadable where the frontmatter would be too large or too deep to be read back. Frontmatter in
    `content` that cannot be read stays where it is, as text.
    """
    front, body = frontmatter.read(content)
    if front.problem:
        front, body = Frontmatter("", {}), content
    given: Metadata = {
        "title": title,
        "type": type or ("" if _text_value(front, "type") else TYPE_DEFAULT),
        "permalink": permalink,
        "tags": [tag for tag in map(_clean_tag, tags) if tag],
    }
    changes = {key: value for key, value in given.items() if value}
    changes |= {key: value for key, value in (metadata or {}).items() if key not in given}
    made = frontmatter.with_values(
        front, changes, newline=markdown_blocks.newline_of(content) or "\n"
    )
    return made if isinstance(made, UnwritableFrontmatter) else made.text + body


def _text_value(front: Frontmatter, key: str) -> str:
    value = front.values.get(key)
    return value if isinstance(value, str) and value.strip() else ""


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[: -len(".md")] if name.lower().endswith(".md") else name


def _parse_tags(value: Json) -> list[str]:
    """A list, or words with commas between them."""
    if isinstance(value, str):
        value = [*value.split(",")]
    if not isinstance(value, list):
        return []
    return [tag for tag in (_clean_tag(part) for part in value if isinstance(part, str)) if tag]


def _clean_tag(text: str) -> str:
    return text.strip().lstrip("#").strip()


def _observation_tags(observations: Iterable[Observation]) -> list[str]:
    return [tag for observation in observations for tag in observation.tags]


def _unique_tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))
