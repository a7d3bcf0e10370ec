"""What the notes of the corpus say, and that nothing else is read into them.

The tables of `test_grammar` and the properties of `test_round_trip` cover the other files, with
other scripts, line ends and encodings.
"""

from pathlib import Path

import pytest

from interlock.core.notes import grammar

CORPUS = Path(__file__).parent / "corpus"

# By file: `line category`, `line kind > target`, `line # heading`.
SAID: dict[str, list[str]] = {
    "basic-memory": [
        "12 # Coffee Brewing Methods",
        "14 ## Observations",
        "15 method",
        "16 tip",
        "17 Note",
        "20 ## Relations",
        "21 relates_to > Coffee Bean Origins",
        "22 requires > Proper Grinding Technique",
        "23 links_to > Chocolate",
        "23 links_to > Cake",
        "24 links_to > Bare",
        "26 links_to > Tea",
    ],
    "broken-yaml": ["5 fact"],
    "callouts": ["3 links_to > Linked From Callout"],
    "comments": [
        "7 links_to > Yes",
        "8 links_to > Also",
        "10 fact",
        "11 fact",
        "11 links_to > Literal",
    ],
    "fences": [
        "1 links_to > Before",
        "15 fact",
        "20 links_to > Back In The Item",
        "23 links_to > Outside",
    ],
    "footnotes": ["8 links_to > From A Footnote"],
    "headings": [
        "1 # One",
        "2 ## Two",
        "5 # ",
        "6 # Three",
        "8 ## Four over two lines",
        "17 ### Indented ### text",
    ],
    "indented-code": ["2 links_to > Yes", "10 links_to > Also"],
    "links": [
        "1 links_to > Embedded",
        "1 links_to > picture.png",
        "2 links_to > T",
        "2 links_to > U",
        "2 links_to > V",
        "2 links_to > W",
        "2 links_to > Spaces",
        "4 links_to > X",
        "4 links_to > Y",
        "6 links_to > Yes",
        "8 links_to > Real",
        "11 links_to > Z",
    ],
    "math-and-shell": ["1 links_to > -f x"],
    "nested-fences": ["7 fact", "10 links_to > Prose"],
    "nested-lists": [
        "2 fact",
        "3 fact",
        "4 fact",
        "5 fact",
        "7 fact",
        "8 fact",
        "9 fact",
        "10 fact",
        "11 fact",
    ],
    "not-utf-8": ["4 fact", "5 kennt > \udcdcbel"],
    "rule-first": ["3 links_to > Link"],
    "table": ["3 links_to > Table Target"],
    "unclosed-frontmatter": ["4 fact"],
}


def said(name: str) -> list[str]:
    text = (CORPUS / f"{name}.markdown").read_bytes().decode("utf-8", "surrogateescape")
    note = grammar.parse_note(text, path=f"{name}.md")
    found = [(seen.line, f"{seen.line} {seen.category}") for seen in note.observations]
    found += [(link.line, f"{link.line} {link.kind} > {link.target}") for link in note.links]
    found += [(it.line, f"{it.line} {'#' * it.level} {it.text}") for it in note.headings]
    return [shown for _, shown in sorted(found, key=lambda each: each[0])]


@pytest.mark.parametrize("name", SAID)
def test_a_note_says_this_and_no_more(name: str) -> None:
    assert said(name) == SAID[name]
