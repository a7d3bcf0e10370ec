"""`interlock store copy` as it is typed: what is said, what is not, and what stops it."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.context import App
from tests.app.admin.store_contents import contents, contents_at
from tests.cli.conftest import Terminal
from tests.cli.running_command import read_terminal, start_in_terminal
from tests.postgres import Cluster
from tests.scenes import handed_in, started
from tests.stores import Place

pytestmark = pytest.mark.sqlite
SECRET = "s3cret"


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """With a password that the server does not ask for."""
    fresh = cluster.fresh()
    yield fresh.replace("interlock@", f"interlock:{SECRET}@")
    cluster.give_back(fresh)


def test_a_copy_reports_what_was_copied_what_is_left_to_do_and_what_was_there(
    app: App, url: str, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = started(app, tmp_path)
    home = app.home

    said = typed("store", "copy", "--to", url)

    shown = url.replace(f":{SECRET}", "")
    assert (said.code, said.err) == (0, "")
    assert f"to        {shown}\n" in said.out
    assert "sessions  1\n" in said.out
    assert f"`{home / 'config.toml'}` with the whole URL, as you gave it:" in said.out
    assert f'    store = "{shown}"\n' in said.out
    assert SECRET not in said.out
    assert not (home / "config.toml").exists()
    handed_in(app, begun)
    started(app, tmp_path)
    again = typed("store", "copy", "--to", url)
    assert "sessions  2, 1 of them there before: went on with those\n" in again.out
    assert contents_at(monkeypatch, home, url) == contents(app)


def test_programs_are_told_the_same(app: App, url: str, typed: Terminal, tmp_path: Path) -> None:
    started(app, tmp_path)

    said = typed("store", "copy", "--to", url, "--json")

    told = json.loads(said.out)
    assert told["sessions"] == told["keys"] == 1
    assert told["brought"] == told["events"]
    assert told["target"] == url.replace(f":{SECRET}", "")
    again = json.loads(typed("store", "copy", "--to", url, "--json").out)
    assert (again["known"], again["brought"]) == (1, 0)


def test_the_way_back_is_to_remove_what_leads_there(
    home: Path, url: str, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "config.toml").write_text(f'store = "{url}"\n')
    to_home = typed("store", "copy", "--to", str(home)).out
    assert to_home.endswith(f"then remove the line `store` from `{home}/config.toml`.\n")
    (home / "config.toml").unlink()
    monkeypatch.setenv("INTERLOCK_STORE", url)
    assert typed("store", "copy", "--to", str(home)).out.endswith("then remove INTERLOCK_STORE.\n")

    there = typed("store", "copy", "--to", "there").out

    home_there = tmp_path / "there"
    assert there.endswith(
        f"then set INTERLOCK_HOME to `{home_there}`, and remove INTERLOCK_STORE.\n"
    )


def unusable(url: str) -> dict[str, tuple[str, str]]:
    """Targets that cannot be used: what is wrong, and what to do."""
    own, where = url.partition("@/")[2].split("?")
    return {
        f"postgresql://me:{SECRET}@127.0.0.1:1/d": (
            "`postgresql://me@127.0.0.1:1/d` cannot be reached: Connection refused\n",
            "Check that PostgreSQL runs there",
        ),
        f"postgresql://guarded@/{own}?{where}": (
            "does not let us in: no password supplied\n",
            "PGPASSWORD",
        ),
        f"mysql://me:{SECRET}@h/d": ("cannot be copied to that", "postgresql://"),
    }


def test_a_target_that_cannot_be_used_is_reported_as_the_store_in_use_would_be(
    cluster: Cluster, home: Path, url: str, typed: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run("DROP ROLE IF EXISTS guarded")
    cluster.run("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    try:
        for target, (error, hint) in unusable(url).items():
            said = typed("store", "copy", "--to", target)
            assert said.code == 1, target
            assert error in said.err, target
            assert hint in said.err.partition("hint: ")[2], target
            assert SECRET not in said.out + said.err, target
            if not target.startswith("mysql:"):
                with monkeypatch.context() as patch:
                    patch.setenv("INTERLOCK_STORE", target)
                    assert typed("store", "stats").err == said.err, target
    finally:
        cluster.run("DROP ROLE guarded")
    assert typed("store", "stats").code == 0
    assert not (home / "config.toml").exists()


def test_refusals_are_told_in_words_and_as_json(
    app: App, home: Path, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = started(app, tmp_path)
    monkeypatch.setenv("INTERLOCK_HOME", str(tmp_path / "other"))
    strange = typed("store", "copy", "--to", str(home), "--json")
    assert strange.code == 1
    told = json.loads(strange.out)
    assert told["code"] == "target_not_empty"
    assert f"`{begun.session}` is not in the store that is copied" in told["error"]
    monkeypatch.setenv("INTERLOCK_HOME", str(home))
    for _ in range(11):
        started(app, tmp_path)
    Place(home).run("DELETE FROM event WHERE seq = 2")

    damaged = typed("store", "copy", "--to", str(tmp_path / "third"))

    assert damaged.code == 1
    assert "error: 12 sessions are damaged: `ses_" in damaged.err
    assert "2 more" in damaged.err
    assert "hint: Nothing was copied." in damaged.err
    assert typed("store", "verify").code == 1


def test_a_target_that_is_no_place_for_a_store_is_refused(
    app: App, typed: Terminal, tmp_path: Path
) -> None:
    assert app.reader.all_sessions() == []
    (tmp_path / "README.md").touch()

    for target, code, error in (
        ("", "invalid_arguments", "No target is named"),
        (".", "target_not_empty", f"`{tmp_path}` holds something else than an Interlock store"),
    ):
        said = typed("store", "copy", "--to", target, "--json")
        told = json.loads(said.out)
        assert (said.code, told["code"], told["error"]) == (1, code, error)
        assert told["hint"].startswith("Nothing was copied. ")
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]


def test_in_a_terminal_a_bar_is_written_over_and_gone_at_the_end(app: App, tmp_path: Path) -> None:
    for _ in range(3):
        started(app, tmp_path)
    process, person = start_in_terminal("store", "copy", "--to", str(tmp_path / "there"))

    shown = b"".join(read_terminal(person)).decode()

    assert process.wait() == 0
    for what in ("Checking ", "Copying  ", "Verifying"):
        assert f"\r{what} [########................] 1 of 3 sessions\033[K" in shown
        assert f"\r{what} [########################] 3 of 3 sessions\033[K" in shown
    assert "\r\033[Kfrom  " in shown
    assert shown.index("from  ") > shown.index("Verifying")


@pytest.mark.slow
def test_a_copy_that_the_user_stops_says_how_it_continues(
    app: App, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(300):
        started(app, tmp_path)
    there = str(tmp_path / "there")
    process, person = start_in_terminal("store", "copy", "--to", there)
    shown, is_stopped = b"", False
    for part in read_terminal(person):
        shown += part
        if b"Copying" in shown and not is_stopped:
            process.send_signal(signal.SIGINT)
            is_stopped = True

    assert process.wait() == 130
    assert b"error: Stopped before the end" in shown
    assert b"hint: The same command again goes on from there." in shown
    with monkeypatch.context() as patch:
        patch.setenv("INTERLOCK_HOME", there)
        unfinished = typed("session", "list")
        assert unfinished.code == 1
        assert "is a copy that is not finished" in unfinished.err
    assert typed("store", "copy", "--to", there).code == 0
    assert contents_at(monkeypatch, Path(there)) == contents(app)
