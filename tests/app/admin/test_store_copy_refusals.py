"""When a store is not copied: what is damaged, foreign or the same is left alone."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.admin.store_copy import CopyReport, copy
from interlock.app.context import App, open_app
from interlock.app.protocol import deletion
from interlock.core.ids import SessionId
from interlock.core.refusal import PlainRefusal
from interlock.store.failures import StoreFailure, StoreUnusable
from tests.app.admin.store_contents import contents, contents_at, copied, opened, quiet, to
from tests.scenes import handed_in, refusal_code, started
from tests.stores import Place

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]  # which store is where is what these are about


DAMAGE = {
    "an event is changed": (
        "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'Try', 'Cry') AS BLOB)"
        " WHERE seq = 1 AND stream = 2"
    ),
    "an event is missing": "DELETE FROM event WHERE seq = 2 AND stream = 2",
    "all events are missing": "DELETE FROM event WHERE stream = 2",
    "the end is another": "UPDATE stream SET digest = zeroblob(32) WHERE id = 2",
    "contents are missing": "DELETE FROM blob",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_source_is_refused_before_anything_is_written(
    app: App, home: Path, tmp_path: Path, damage: str
) -> None:
    answers = [started(app, tmp_path) for _ in range(3)]
    Place(home).run(damage)

    refusal = copy(app, str(tmp_path / "there"), quiet)

    assert isinstance(refusal, PlainRefusal)
    assert (refusal.code, answers[1].session in refusal.error) == ("session_unhealthy", True)
    with closing(open_app(tmp_path / "there")) as there:
        assert there.reader.all_sessions() == []


@pytest.mark.slow
def test_a_head_that_does_not_follow_from_the_events_is_noticed(
    app: App, home: Path, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = started(app, tmp_path)
    Place(home).run("UPDATE run SET head = CAST(replace(CAST(head AS TEXT), 'Try', 'Cry') AS BLOB)")

    refusal = copy(app, to(target), quiet)

    assert isinstance(refusal, PlainRefusal)
    assert (refusal.code, begun.session in refusal.error) == ("copy_unlike", True)
    with pytest.raises(StoreUnusable, match="not finished"):
        contents_at(monkeypatch, target.home, target.url)


def altered_in(target: Place, sql: str) -> Callable[[str, int, int], None]:
    def tell(what: str, done: int, _total: int) -> None:
        if (what, done) == ("Verifying", 1):
            target.run(sql)

    return tell


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE event SET digest = body WHERE seq = 2 AND stream = (SELECT max(id) FROM stream)",
        "DELETE FROM event WHERE seq = 2 AND stream = (SELECT max(id) FROM stream)",
        "UPDATE stream SET version = 1 WHERE id = (SELECT max(id) FROM stream)",
        "DELETE FROM stream WHERE id = (SELECT max(id) FROM stream)",
    ],
)
def test_what_did_not_arrive_is_named_and_the_target_is_not_used(
    app: App, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    answers = [started(app, tmp_path) for _ in range(3)]

    refusal = copy(app, to(target), altered_in(target, sql))

    assert isinstance(refusal, PlainRefusal)
    assert (refusal.code, answers[2].session in refusal.error) == ("copy_unlike", True)
    with pytest.raises(StoreUnusable, match="not finished"):
        contents_at(monkeypatch, target.home, target.url)


def test_a_target_with_sessions_of_its_own_is_refused_and_left_alone(
    app: App, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(app, tmp_path)
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        begun = started(there, tmp_path)
        was = contents(there)

    refusal = copy(app, to(target), quiet)

    assert isinstance(refusal, PlainRefusal)
    assert refusal.code == "target_not_empty"
    assert f"`{begun.session}` is not in the store" in refusal.error
    assert contents_at(monkeypatch, target.home, target.url) == was


def test_a_session_that_went_on_in_the_target_is_not_overwritten(
    app: App, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = started(app, tmp_path)
    copied(app, to(target))
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        handed_in(there, begun, "in the target")
        was = contents(there)

    for notes in (None, "in the source", "and on"):
        if notes:
            begun = handed_in(app, begun, notes)
        refusal = copy(app, to(target), quiet)
        assert isinstance(refusal, PlainRefusal)
        assert (refusal.code, "went on differently" in refusal.error) == ("target_not_empty", True)
    assert contents_at(monkeypatch, target.home, target.url) == was


def test_a_session_that_somebody_began_in_the_target_meanwhile_is_not_deleted(
    app: App, target: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who had opened the target before it was marked can still write to it."""
    gone = started(app, tmp_path).session
    copied(app, to(target))
    started(app, tmp_path)
    begun: list[SessionId] = []
    with closing(opened(monkeypatch, target.home, target.url)) as there:
        there.reader.all_sessions()

        def meddle(what: str, done: int, _total: int) -> None:
            if (what, done) == ("Checking", 1):
                begun.append(started(there, tmp_path).session)
                deletion.delete(app, gone)

        refusal = copy(app, to(target), meddle)

        assert isinstance(refusal, PlainRefusal)
        assert (refusal.code, begun[0] in refusal.error) == ("copy_unlike", True)
        assert {begun[0], gone} < set(there.log.all_sessions())


def test_a_store_is_not_copied_to_itself_whatever_it_is_called(
    app: App, home: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(app, tmp_path)
    (tmp_path / "alias").symlink_to(home)
    for name in (str(home), str(tmp_path / "alias")):
        assert refusal_code(copy(app, name, quiet)) == "same_store"
    assert contents_at(monkeypatch, home) == contents(app)
    with closing(opened(monkeypatch, home, url)) as shared:
        for name in (url, f"{url}&application_name=other"):
            assert refusal_code(copy(shared, name, quiet)) == "same_store"
        other_schema = f"{url}&options=-csearch_path%3Dtheirs"
        assert isinstance(copy(shared, other_schema, quiet), CopyReport)


@pytest.mark.parametrize(
    "name",
    [
        "mysql://me:s3cret@h/d",
        "postgresql:me:s3cret@h",
        "sqlite:x",
        "host=db password=s3cret dbname=x",
        "password = s3cret",
    ],
)
def test_what_is_neither_a_url_nor_a_directory_is_refused(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreFailure, match="cannot be copied to that") as failed:
        copy(app, name, quiet)

    assert "s3cret" not in f"{failed.value} {failed.value.hint}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_a_target_without_a_name_is_refused_and_nothing_is_put_here(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As of a variable that is not set."""
    monkeypatch.chdir(tmp_path)

    assert refusal_code(copy(app, name, quiet)) == "invalid_arguments"

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [".git", "README.md", "keyring"])
def test_a_directory_with_something_else_in_it_is_refused_and_left_alone(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / there).write_text("mine")
    monkeypatch.chdir(checkout)

    for name in (str(checkout), "."):
        assert refusal_code(copy(app, name, quiet)) == "target_not_empty"

    assert [file.name for file in checkout.iterdir()] == [there]


def test_an_empty_directory_a_copy_and_one_that_was_barely_begun_are_taken(
    app: App, tmp_path: Path
) -> None:
    started(app, tmp_path)
    there = tmp_path / "there"
    there.mkdir()
    copied(app, str(there))
    (there / "mine.txt").write_text("put there since")
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "interlock.db.lock").touch()

    for name in (there, begun):
        assert copied(app, str(name)).sessions == 1
