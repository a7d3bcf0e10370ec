"""Where the store is: in the data home, or where the user says, and nobody else."""

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from interlock.app.context import open_app
from interlock.store.failures import StoreUnusable
from tests.scenes import started

pytestmark = pytest.mark.sqlite


def configure(directory: Path, text: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.toml").write_text(text)


def test_without_a_word_it_is_a_file_in_the_data_home(home: Path) -> None:
    with closing(open_app(home)) as app:
        assert app.store_label == str(home / "interlock.db")
        assert app.reader.stats().engine.startswith("SQLite")


def test_the_user_s_config_names_another(home: Path, url: str, tmp_path: Path) -> None:
    configure(home, f'store = "{url}"\n')
    with closing(open_app(home)) as app:
        begun = started(app, tmp_path)
        assert app.reader.stats().engine.startswith("PostgreSQL")
        assert not (home / "interlock.db").exists()
        assert not (home / "keyring").exists()
    other = home.with_name("another machine")
    configure(other, f'store = "{url}"\n')
    with closing(open_app(other)) as app:
        assert app.reader.stream(begun.session)
        assert stat.S_IMODE(other.stat().st_mode) & 0o700 == 0o700


def test_a_variable_wins_over_the_config(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, 'store = "postgresql://nobody@127.0.0.1:1/none"\n')
    monkeypatch.setenv("INTERLOCK_STORE", url)

    with closing(open_app(home)) as app:
        assert app.reader.stats().engine.startswith("PostgreSQL")


def test_a_project_cannot_send_sessions_elsewhere(home: Path, tmp_path: Path) -> None:
    configure(tmp_path / ".interlock", 'store = "postgresql://spy@127.0.0.1:1/theirs"\n')
    previous = Path.cwd()
    os.chdir(tmp_path)
    try:
        with closing(open_app(home)) as app:
            started(app, tmp_path)
            assert app.store_label == str(home / "interlock.db")
    finally:
        os.chdir(previous)


@pytest.mark.parametrize(
    "text",
    ['store = "postgresql://me:s3cret@h/d\n', "store = 5\n", '[gate\nstore = "x"\n'],
)
def test_a_config_that_cannot_be_read_sends_nothing_to_another_store(home: Path, text: str) -> None:
    configure(home, text)

    with pytest.raises(StoreUnusable, match="not certain where the store is") as failed:
        open_app(home)

    assert "s3cret" not in f"{failed.value} {failed.value.__cause__}"
    assert not (home / "interlock.db").exists()


@pytest.mark.parametrize("section", ["[gate]", "[gate.rules]", "[[more]]"])
def test_a_store_that_is_named_below_a_section_is_not_passed_over(home: Path, section: str) -> None:
    configure(home, f'{section}\nstore = "postgresql://me:s3cret@127.0.0.1:1/d"\n')

    with pytest.raises(StoreUnusable, match="not certain where the store is") as failed:
        open_app(home)

    assert "above the first [section]" in f"{failed.value} {failed.value.hint}"
    assert "s3cret" not in f"{failed.value} {failed.value.__cause__}"
    assert not (home / "interlock.db").exists()


def test_another_setting_of_that_name_below_a_section_is_none_of_ours(home: Path) -> None:
    configure(home, '[bindings]\nstore = "the corner shop"\n')

    with closing(open_app(home)) as app:
        assert app.store_label == str(home / "interlock.db")


def test_a_config_that_is_broken_elsewhere_leaves_the_file_in_use(home: Path) -> None:
    configure(home, "[preferences\n")

    with closing(open_app(home)) as app:
        assert app.store_label == str(home / "interlock.db")


def test_what_cannot_be_used_is_said(home: Path) -> None:
    configure(home, 'store = "redis://me:s3cret@h/d"\n')

    with pytest.raises(StoreUnusable, match="no kind that Interlock knows") as failed:
        open_app(home)

    assert "s3cret" not in str(failed.value)
