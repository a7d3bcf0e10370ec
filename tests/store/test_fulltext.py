"""The same words are found in every store: SQLite says what a word is, and PostgreSQL follows."""
# pyright: reportUnknownMemberType=false

from collections.abc import Iterator
from typing import NamedTuple

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlock.store.fulltext import to_tsquery, to_tsvector
from interlock.store.postgres.address import parse_address
from interlock.store.postgres.writer import PostgresLog
from interlock.store.sqlite.log_database import match_expression
from tests.effort import scale
from tests.postgres import Cluster

LETTERS = "aA9_-.'\"*&|!:()<> \n\\%éÉÅßøñçİıŁ́ΏжйЁЖ修复ああ한글गि٣²½️\u00a0\u200b\x00"
"""Letters of several scripts, accents on their own, signs, and what is syntax somewhere."""
TEXTS = st.text(st.sampled_from(LETTERS), max_size=12)


@pytest.fixture(scope="module")
def log(cluster: Cluster) -> Iterator[PostgresLog]:
    url = cluster.fresh()
    opened = PostgresLog(parse_address(url))
    yield opened
    opened.close()
    cluster.give_back(url)


@pytest.fixture(scope="module")
def fts() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (a, b, tokenize = 'unicode61')")
    return connection


def is_found_by_sqlite(
    fts: apsw.Connection, texts: tuple[str, str], words: list[str], *, all_of: bool
) -> bool:
    fts.execute("DELETE FROM t")
    fts.execute("INSERT INTO t VALUES (?, ?)", [text.replace("\0", "\ufffd") for text in texts])
    sought = match_expression([word.replace("\0", "\ufffd") for word in words], all_of=all_of)
    return bool(list(fts.execute("SELECT 1 FROM t WHERE t MATCH ?", (sought,))))


class Search(NamedTuple):
    title: str
    notes: str
    words: list[str]
    is_all: bool = True


SEARCHES = st.builds(Search, TEXTS, TEXTS, st.lists(TEXTS, min_size=1, max_size=2), st.booleans())


@settings(max_examples=scale(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SEARCHES)
@example(Search("Mend the parser", "a loop", ["pars", "LOOP"]))
@example(Search("foo-bar", "baz", ["foo bar"]))
@example(Search("foo", "bar", ["foo bar"]))
@example(Search("a b", "", ["a *", "!"]))
def test_both_stores_find_the_same(log: PostgresLog, fts: apsw.Connection, search: Search) -> None:
    title, notes, words, is_all = search
    sought = to_tsquery(words, all_of=is_all)
    found = bool(sought) and log.db.scalar(
        "SELECT %s::tsvector @@ %s::tsquery", (to_tsvector((title, notes)), sought)
    )

    assert found == is_found_by_sqlite(fts, (title, notes), words, all_of=is_all)


def test_long_texts_and_long_words_are_taken(log: PostgresLog) -> None:
    text = "needle " + "w" * 5_000 + " " + "é" * 5_000 + " " + " ".join(map(str, range(30_000)))

    found = log.db.scalar(
        "SELECT %s::tsvector @@ %s::tsquery",
        (to_tsvector((text,)), to_tsquery(["needle", "29999"], all_of=True)),
    )

    assert found is True
