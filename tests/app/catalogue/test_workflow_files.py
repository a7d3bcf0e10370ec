"""The catalogue: where workflows come from, and that nothing in it is dropped in silence."""

from pathlib import Path

import msgspec

from interlock.app.callers.caller import local_caller
from interlock.app.catalogue.workflow_files import (
    WorkflowFile,
    find_workflow,
    find_workflow_file,
    list_workflows,
    pinned_workflow,
    usage_by_workflow,
    workflow_handle,
)
from interlock.app.context import App
from interlock.app.refusals import NoSuchWorkflow
from interlock.app.runs.start import StartRequest, start
from interlock.app.runs.user_actions import set_archived
from interlock.app.sessions.known_workspaces import known_workspace, known_workspaces
from interlock.app.sessions.lookup import SessionFilter, session_page
from interlock.core import canonical
from interlock.core.ids import WorkflowId
from interlock.core.session.answer import RenderedAnswer
from tests.scenes import install, linear, started


def test_the_project_replaces_what_the_user_has(app: App, home: Path, tmp_path: Path) -> None:
    (home / "workflows").mkdir()
    (home / "workflows" / "line.json").write_bytes(msgspec.json.encode(linear(1)))
    users = list_workflows(app, tmp_path, query="one after").entries
    assert [entry.place.origin for entry in users] == ["user"]

    install(app, tmp_path, linear(4))

    entry = list_workflows(app, tmp_path, query="one after").entries[0]
    assert (entry.place.origin, len(entry.workflow.steps)) == ("project", 4)
    assert [hidden.origin for hidden in entry.shadows] == ["user"]


def test_a_broken_file_is_listed_with_what_is_wrong(app: App, tmp_path: Path) -> None:
    install(app, tmp_path, linear())
    broken = tmp_path / ".interlock" / "workflows" / "oops.json"
    broken.write_text('{"id": "oops"}')

    listing = list_workflows(app, tmp_path)

    assert [file.place.path for file in listing.broken] == [broken]
    assert "name" in str(listing.broken[0].problems[0])
    refusal = find_workflow(app, tmp_path, WorkflowId("oops"))
    assert isinstance(refusal, NoSuchWorkflow)
    assert str(broken) in refusal.explain().hint


def test_a_changed_file_is_read_again(app: App, tmp_path: Path) -> None:
    install(app, tmp_path, linear(1))
    before = list_workflows(app, tmp_path, query="line").entries[0].pinned.hash
    install(app, tmp_path, linear(2))

    assert list_workflows(app, tmp_path, query="line").entries[0].pinned.hash != before


def test_workflows_are_chosen_by_tag_and_by_words(app: App, tmp_path: Path) -> None:
    install(app, tmp_path, linear())

    def ids_of(**filters: object) -> list[str]:
        listing = list_workflows(app, tmp_path, **filters)  # pyright: ignore[reportArgumentType]
        return [entry.workflow.id for entry in listing.entries]

    assert {"hello", "line"} < set(ids_of())
    assert ids_of(tags=("learning",)) == ["hello"]
    assert ids_of(query="one AFTER") == ["line"]
    assert ids_of(query="nothing like it") == []
    assert list_workflows(app, tmp_path).tags["learning"] == 1


def test_a_directory_that_cannot_be_read_is_no_catastrophe(app: App, tmp_path: Path) -> None:
    install(app, tmp_path, linear())
    (tmp_path / ".interlock" / "workflows" / "loop.json").symlink_to("loop.json")

    listing = list_workflows(app, tmp_path)

    assert "line" in [entry.workflow.id for entry in listing.entries]
    assert "cannot be read" in str(listing.broken[0].problems[0])


def test_without_a_workspace_only_what_is_there_everywhere_is_listed(
    app: App, tmp_path: Path
) -> None:
    install(app, tmp_path, linear())

    assert "line" not in [entry.workflow.id for entry in list_workflows(app, None).entries]
    assert "hello" in [entry.workflow.id for entry in list_workflows(app, None).entries]


def test_a_file_is_found_by_its_id_or_its_handle_whatever_is_wrong_with_it(
    app: App, home: Path, tmp_path: Path
) -> None:
    (home / "workflows").mkdir()
    (home / "workflows" / "line.json").write_bytes(msgspec.json.encode(linear(1)))
    install(app, tmp_path, linear(4))
    repeated = msgspec.structs.replace(linear(2, "twice"), steps=linear(1).steps * 2)
    install(app, tmp_path, repeated)
    (tmp_path / ".interlock" / "workflows" / "oops.json").write_text("{}")
    valid = find_workflow_file(app, tmp_path, "line")
    assert isinstance(valid, WorkflowFile)
    (shadow,) = valid.shadows
    hidden = find_workflow_file(app, tmp_path, workflow_handle(shadow))
    twice, oops = (
        find_workflow_file(app, tmp_path, "twice"),
        find_workflow_file(app, tmp_path, "oops"),
    )

    assert (valid.can_start, valid.place.origin) == (True, "project")
    assert find_workflow_file(app, tmp_path, workflow_handle(valid.place)) == valid
    assert isinstance(hidden, WorkflowFile)
    assert (hidden.can_start, hidden.hidden_by, hidden.place) == (False, valid.place, shadow)
    assert isinstance(twice, WorkflowFile)
    assert (twice.workflow, twice.can_start, twice.problems[0].rule) == ("twice", False, "id")
    assert isinstance(oops, WorkflowFile)
    assert (oops.workflow, oops.can_start) == (None, False)
    assert isinstance(find_workflow_file(app, tmp_path, "~0000000000000000"), NoSuchWorkflow)
    assert isinstance(find_workflow_file(app, None, "twice"), NoSuchWorkflow)


def test_a_valid_file_names_the_broken_one_that_was_meant_for_its_id(
    app: App, home: Path, tmp_path: Path
) -> None:
    (home / "workflows").mkdir()
    (home / "workflows" / "line.json").write_bytes(msgspec.json.encode(linear(1)))
    broken = tmp_path / ".interlock" / "workflows" / "line.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")

    found = find_workflow_file(app, tmp_path, "line")

    assert isinstance(found, WorkflowFile)
    assert (found.place.origin, [place.path for place in found.broken]) == ("user", [broken])


def test_use_is_counted_in_sessions_and_workspaces_are_those_of_sessions(
    app: App, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    first, second = (started(app, place) for place in places)
    set_archived(app, first.session, is_archived=True)
    used = usage_by_workflow(app)["line"]
    pinned = pinned_workflow(app, "line", app.reader.usage()[0].workflow)

    assert (used.sessions, used.archived) == (1, 1)
    assert used.updated_ms > 0
    assert pinned is None, "that is no hash"
    assert set(known_workspaces(app)) == {str(place) for place in places}
    assert known_workspace(app, str(places[1])) == places[1]
    assert known_workspace(app, str(tmp_path)) != tmp_path
    places[0].joinpath(".interlock").rename(tmp_path / "moved")
    places[0].rmdir()
    assert known_workspaces(app) == (str(places[1]),)
    assert known_workspace(app, str(places[0])) != places[0]
    assert second.session != first.session


def test_what_is_pinned_is_read_back_only_under_its_own_workflow(app: App, tmp_path: Path) -> None:
    answer = started(app, tmp_path)
    name = app.reader.runs(answer.session)[0].workflow_hash

    pinned = pinned_workflow(app, "line", name)

    assert pinned is not None
    assert (pinned.hash, pinned.workflow.id) == (name, "line")
    assert canonical.blob_ref(pinned.content) == name
    assert pinned_workflow(app, "hello", name) is None


def test_a_session_is_found_by_any_workflow_that_was_run_in_it(app: App, tmp_path: Path) -> None:
    session = started(app, tmp_path).session
    second = start(
        app,
        StartRequest(WorkflowId("hello"), "And this", local_caller(app, tmp_path, session=session)),
    )
    assert isinstance(second, RenderedAnswer)

    for name, found in (("line", [session]), ("hello", [session]), ("discovery", [])):
        page = session_page(app, SessionFilter(workflow=name), after="", limit=10)
        assert [one.session for one in page.sessions] == found
    assert {name: used.sessions for name, used in usage_by_workflow(app).items()} == {
        "line": 1,
        "hello": 1,
    }
