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
