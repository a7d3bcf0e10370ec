"""The settings of systems of others: off unless the user says so."""

from pathlib import Path

import pytest

from interlock.workspace.failures import SettingsBroken
from interlock.workspace.projects.settings import OutsideServices, outside_services_in


def test_without_settings_no_outside_service_is_used(tmp_path: Path) -> None:
    services = outside_services_in(tmp_path / "config.toml")

    assert services == OutsideServices("", "", "warn", beads=False, beads_command="bd")


def test_the_settings_of_services_are_read_beside_those_of_others(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("""
[coordination]
enforce = true
stale_minutes = 10
mail_url = "http://127.0.0.1:8765/api/"
mail_token = "s3cret"
mail_down = "halt"
beads = true
beads_command = "/opt/bd"
""")

    assert outside_services_in(config) == OutsideServices(
        "http://127.0.0.1:8765/api/", "s3cret", "halt", beads=True, beads_command="/opt/bd"
    )


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[coordination]\nmail_down = "ignore"\n')

    with pytest.raises(SettingsBroken, match="mail_down"):
        outside_services_in(config)
