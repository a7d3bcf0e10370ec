"""Forges are the user's to name, their secrets are read when they are used, and shown nowhere."""

from pathlib import Path

import pytest

from interlock.app.context import App
from interlock.app.failures import SettingsBroken
from interlock.app.unattended.forge_settings import ForgeSettings, forge_settings, open_forge

SECRET = "a-secret-token"


def configure(app: App, text: str) -> None:
    (app.home / "config.toml").write_text(text)


def test_forges_are_named_in_the_users_config(app: App, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{SECRET}\n")
    configure(app, f'[forges.ours]\nkind = "gitlab"\ntoken_file = "{token}"\n')

    assert forge_settings(app.home) == {"ours": ForgeSettings("gitlab", token_file=str(token))}
    assert SECRET not in repr(open_forge(app.home, "ours"))


@pytest.mark.parametrize(
    ("section", "content", "sentence"),
    [
        ("", "", "knows no forge `ours`. Write `[forges.ours]` with `kind` and"),
        ('[forges.ours]\nkind = "github"\n', "", "is not set. Name a file there"),
        ('[forges.ours]\nkind = "gitea"\n', "", "Invalid enum value 'gitea'"),
        ('[forges.ours]\nkind = "github"\ntoken = "x"\n', "", "unknown field `token`"),
        (
            '[forges.ours]\nkind = "github"\ntoken_file = "/nowhere"\n',
            "",
            "cannot be read: No",
        ),
        ("with a file", "", "is empty"),
        ("with a file", f"{SECRET} and more", "must hold one token alone"),
        ("with a file", f"{SECRET}\nmore", "must hold one token alone"),
        ("with a file", f"{SECRET}\u00e9", "must hold one token alone"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write_and_never_with_the_secret(
    app: App, tmp_path: Path, section: str, content: str, sentence: str
) -> None:
    token = tmp_path / "token"
    token.write_text(content)
    with_file = f'[forges.ours]\nkind = "github"\ntoken_file = "{token}"\n'
    configure(app, with_file if section == "with a file" else section)

    with pytest.raises(SettingsBroken) as broken:
        open_forge(app.home, "ours")

    assert sentence in str(broken.value)
    assert str(app.home / "config.toml") in str(broken.value)
    assert SECRET not in str(broken.value)


def test_a_new_token_counts_at_once(app: App, tmp_path: Path) -> None:
    token = tmp_path / "token"
    configure(app, f'[forges.ours]\nkind = "github"\ntoken_file = "{token}"\n')
    with pytest.raises(SettingsBroken):
        open_forge(app.home, "ours")

    token.write_text(SECRET)

    assert open_forge(app.home, "ours")
