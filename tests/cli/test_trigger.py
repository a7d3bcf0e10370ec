"""`interlock trigger`, as its user types it."""

import json
from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.unattended.orders import list_active
from tests.cli.conftest import Terminal
from tests.trigger_scene import TriggerScene, encode, merge_request, review_table

NIGHTLY = {
    "source": "cron",
    "schedule": "0 3 * * *",
    "zone": "Europe/Berlin",
    "workflow": "hello",
    "goal": "Tidy up",
    "limits": {"turns": 5},
}


@pytest.fixture
def scene(home: Path, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TriggerScene:
    assert app
    scene = TriggerScene(tmp_path, home=home)
    monkeypatch.chdir(scene.repository)
    return scene


def test_the_list_says_where_to_send_what_is_wrong_and_what_happened(
    typed: Terminal, scene: TriggerScene, app: App
) -> None:
    assert "There are no triggers" in typed("trigger", "list").out
    scene.write(review=review_table(workflow="nowhere"), nightly=NIGHTLY)
    ran = typed("trigger", "run", "nightly")

    shown = typed("trigger", "list").out

    assert "\n  ordered  ses_" in ran.out
    assert f"webhook: http://127.0.0.1:PORT{scene.path('review')}" in shown
    assert "problem: there is no workflow `nowhere` in this project" in shown
    assert "0 3 * * *, Europe/Berlin" in shown
    assert "ago: ordered  ses_" in shown or "now: ordered  ses_" in shown
    ((_, state),) = list_active(app)
    assert (state.order.goal, state.order.trigger) == (
        "Tidy up",
        scene.path("nightly").removeprefix("/hooks/"),
    )
    due = json.loads(typed("driver", "status", "--json").out)["nextTimes"]
    assert list(due) == [state.order.trigger]


def test_a_trial_says_what_would_happen_and_nothing_does(
    typed: Terminal, scene: TriggerScene, app: App, tmp_path: Path
) -> None:
    scene.write(review=review_table(quote="{{ object_attributes.url }}", deliver=["comment"]))
    payload = tmp_path / "payload.json"
    payload.write_bytes(encode(merge_request()))
    words = ("trigger", "test", "review", "--payload", str(payload))

    counted = typed(*words, "--event", "Merge Request Hook")
    other = typed(*words, "--event", "Push Hook")
    without = typed("trigger", "test", "review")

    assert "It would start `hello` as ses_" in counted.out
    assert "Review !7: Add a cache" in counted.out
    assert "with this text as data:\nhttps://gitlab.example.org" in counted.out
    assert "and deliver: comment" in counted.out
    assert "Nothing would be started" in other.out
    assert (without.code, "needs an occasion" in without.err) == (1, True)
    assert list_active(app) == []


def test_a_file_is_checked_before_anybody_trusts_it(typed: Terminal, scene: TriggerScene) -> None:
    scene.file.write_text("[review]\nsource = 'cron'\n[other\n")
    broken = typed("trigger", "validate")
    scene.file.write_text(
        "[Review]\nsource = 'cron'\n[nightly]\nsource = 'cron'\nworkflow = 'hello'\n"
        "goal = '{{ event.title }}'\nlimits = {}\nzone = 'Europe/Berlin'\n"
    )
    faulty = typed("trigger", "validate")
    scene.write(nightly=NIGHTLY)
    sound = typed("trigger", "validate", "--json")

    assert (broken.code, "cannot be used" in broken.out) == (1, True)
    assert faulty.code == 1
    for fault in ("small letters", "`limits` must name", "`schedule` and `zone`", "no values"):
        assert fault in faulty.out
    assert (sound.code, json.loads(sound.out)) == (0, {"faults": [], "problems": {"nightly": []}})


def test_all_faults_of_a_file_are_named_at_once(typed: Terminal, scene: TriggerScene) -> None:
    scene.file.write_text(
        "[one]\nsource = 'cron'\ngoal = 7\nlimits = {turns = 0}\ncolour = 'red'\n"
        "[two]\nsource = 'clock'\nworkflow = 'hello'\ngoal = 'x'\nlimits = {}\n"
    )

    said = typed("trigger", "validate")

    assert said.code == 1
    for fault in (
        "`one`: there is no setting `colour`",
        "`one`: `workflow` is missing",
        "`one`: `goal`: Expected `str`",
        "`one`: `limits`: Expected `int` >= 1",
        "`two`: `source`: Invalid enum value",
    ):
        assert fault in said.out


def test_a_check_names_what_would_fail_on_this_machine(
    typed: Terminal, scene: TriggerScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "secret").chmod(0o644)
    scene.write(
        review=review_table(model="anthropic:MODEL"),
        nightly=NIGHTLY | {"model": "openai:gpt-5"},
    )

    said = typed("trigger", "validate", "--json")

    problems = json.loads(said.out)["problems"]
    assert said.code == 1
    assert any(one.startswith("`anthropic:MODEL` is not a model") for one in problems["review"])
    assert any("can be read by other users: `chmod 600" in one for one in problems["review"])
    (no_key,) = problems["nightly"]
    assert "OPENAI_API_KEY is not set here" in no_key
    key = tmp_path / "key"
    key.write_text("sk")
    key.chmod(0o640)
    config = scene.home / "config.toml"
    config.write_text(config.read_text().replace("[driver]", f'[driver]\nkey_file = "{key}"', 1))
    (loose,) = json.loads(typed("trigger", "validate", "--json").out)["problems"]["nightly"]
    assert "`key_file`" in loose
    key.chmod(0o600)
    assert json.loads(typed("trigger", "validate", "--json").out)["problems"]["nightly"] == []
