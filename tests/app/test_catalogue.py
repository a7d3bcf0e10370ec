"""The catalogue: where workflows come from, and that nothing in it is dropped in silence."""

from pathlib import Path

import msgspec

from interlock.app.catalogue import find_workflow, list_workflows
from interlock.app.context import App
from interlock.app.explain import explain
from interlock.app.refusals import NoSuchWorkflow
from interlock.core.ids import WorkflowId
from tests.scenes import install, linear


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
    assert str(broken) in explain(refusal).hint


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


def test_every_bundled_workflow_is_valid(app: App, tmp_path: Path) -> None:
    listing = list_workflows(app, tmp_path)

    assert listing.entries
    assert listing.broken == ()
