"""What the notes of the corpus say, and that nothing else is read into them."""

from pathlib import Path

import pytest

from interlock.core.notes import grammar

CORPUS = Path(__file__).parent / "corpus"

# By file: `line category`, `line kind > target`, `line # heading`.
SAID: dict[str, list[str]] = {
    "arabic": ["1 قرار", "2 ينفذ > المتطلب"],
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
    "byte-order-mark-alone": ["1 # Heading", "2 fact"],
    "byte-order-mark": ["4 # Heading"],
    "callouts": ["3 links_to > Linked From Callout"],
    "checkboxes": [
        "1 links_to > Of Task",
        "2 links_to > Of Task",
        "3 links_to > Of Task",
        "4 links_to > Of Task",
        "5 links_to > Of Task",
        "6 links_to > Of Task",
        "7 links_to > Of Task",
        "8 links_to > Of Task",
        "9 links_to > Of Task",
        "10 links_to > Of Task",
        "11 links_to > Of Task",
        "12 links_to > Of Task",
    ],
    "chinese": ["1 # 决定", "3 决定", "4 事", "5 实现 > 需求四", "6 links_to > 原则"],
    "comments": [
        "7 links_to > Yes",
        "8 links_to > Also",
        "10 fact",
        "11 fact",
        "11 links_to > Literal",
    ],
    "control-characters": ["1 fact", "2 uses > A\x00B"],
    "crlf": ["5 # Heading", "7 fact", "8 uses > Target"],
    "empty": [],
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
    "hindi": ["1 निर्णय", "2 आधारित_है > सिद्धांत"],
    "indented-code": ["2 links_to > Yes", "10 links_to > Also"],
    "japanese": ["1 メモ", "2 実装する > 要件"],
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
    "mixed-newlines": ["1 # One", "2 fact", "3 fact", "4 fact", "7 links_to > End"],
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
    "no-final-newline": ["1 fact"],
    "no-frontmatter": ["1 # Just a heading", "3 links_to > A Link"],
    "not-utf-8": ["4 fact", "5 kennt > \udcdcbel"],
    "only-frontmatter": [],
    "rule-first": ["3 links_to > Link"],
    "russian": [
        "5 # Решения",
        "7 решение",
        "8 реализует > Требование 4",
        "9 зависит от > Хранилище",
    ],
    "table": ["3 links_to > Table Target"],
    "timestamps": ["11 Note", "12 Room 12:30"],
    "trailing-spaces": ["1 # Heading", "2 fact", "3 uses > T"],
    "unclosed-frontmatter": ["4 fact"],
    "windows-paths": ["1 path", "2 Note"],
}


def said(name: str) -> list[str]:
    text = (CORPUS / f"{name}.markdown").read_bytes().decode("utf-8", "surrogateescape")
    note = grammar.parse_note(text, path=f"{name}.md")
    found = [(seen.line, f"{seen.line} {seen.category}") for seen in note.observations]
    found += [(link.line, f"{link.line} {link.kind} > {link.target}") for link in note.links]
    found += [(it.line, f"{it.line} {'#' * it.level} {it.text}") for it in note.headings]
    return [shown for _, shown in sorted(found, key=lambda each: each[0])]


def test_every_file_of_the_corpus_is_spoken_of() -> None:
    assert {path.stem for path in CORPUS.iterdir()} == set(SAID)


def test_git_has_kept_the_newlines_of_the_corpus() -> None:
    assert b"\r\n" in (CORPUS / "crlf.markdown").read_bytes()


@pytest.mark.parametrize("name", SAID)
def test_a_note_says_this_and_no_more(name: str) -> None:
    assert said(name) == SAID[name]
