"""Copying to a store that takes its time: the source waits for it, however long that is."""

from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.admin.store_copy import CopyReport, copy
from tests.app.admin.store_contents import contents, contents_at, opened
from tests.postgres import Cluster, connected
from tests.scenes import handed_in, started
from tests.stores import Place

pytestmark = pytest.mark.sqlite  # which store is where is what these are about

IDLE_MS = 200
SLOW = f"""
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep({3 * IDLE_MS / 1_000}); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT OR UPDATE ON stream EXECUTE FUNCTION slow();
"""


@pytest.fixture
def slow(cluster: Cluster, home: Path) -> str:
    """A database where each append takes longer than the source's server waits."""
    url = cluster.empty()
    connected(url).close()
    Place(home, url).run(SLOW)
    return url


def test_a_slow_target_does_not_cost_the_source_its_moment(
    url: str, slow: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the source's server ends it, and each copy again at the same place."""
    with closing(opened(monkeypatch, home, url)) as agent:
        handed_in(agent, started(agent, tmp_path))

        def go_on(what: str, done: int, total: int) -> None:
            if (what, done) == ("Copying", total):
                started(agent, tmp_path)  # what is brought while the one moment is held

        impatient = f"{url}&options=-cidle_in_transaction_session_timeout%3D{IDLE_MS}"
        with closing(opened(monkeypatch, home, impatient)) as source:
            done = copy(source, slow, go_on)
            assert isinstance(done, CopyReport), done
            assert done.sessions == 2
            was = contents(source)

    assert contents_at(monkeypatch, home, slow) == was
