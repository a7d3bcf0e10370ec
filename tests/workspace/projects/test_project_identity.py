"""Projects: the same for worktrees and clones, as their config names them; and their settings."""

from pathlib import Path

import pytest

from interlock.workspace.failures import SettingsBroken
from interlock.workspace.projects.coordination_rules import coordination_rules_in
from interlock.workspace.projects.project import CONFIG
from interlock.workspace.projects.project_identity import locate_project, normalise_address
from interlock.workspace.projects.settings import OutsideServices, outside_services_in
from tests.app.coordination.team import git


@pytest.mark.parametrize(
    "address",
    [
        "https://example.com/team/shop.git",
        "https://me:secret@example.com/team/shop",
        "git@example.com:team/shop.git",
        "ssh://git@Example.com:22/team/shop/",
    ],
)
def test_the_ways_to_write_an_address_are_one(address: str) -> None:
    assert normalise_address(address) == "example.com/team/shop"


def test_worktrees_and_clones_are_one_project_and_a_config_may_name_it(
    tmp_path: Path, home: Path
) -> None:
    shop, tree, clone = (tmp_path / name for name in ("shop", "tree", "clone"))
    (shop / "src").mkdir(parents=True)
    (shop / "src" / "a.py").write_text("x")
    git(shop, "init", "-q")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "first")
    git(shop, "remote", "add", "origin", "git@example.com:team/shop.git")
    git(shop, "worktree", "add", "-q", str(tree))
    git(tmp_path, "clone", "-q", str(shop), str(clone))
    git(clone, "remote", "set-url", "origin", "https://example.com/team/shop")

    places = {path: locate_project(home, path) for path in (shop, shop / "src", tree, clone)}

    by_directory, by_history = places[shop].likely
    assert places[shop / "src"] == places[shop]
    assert (places[tree].root, places[tree].likely) == (tree, places[shop].likely)
    assert places[clone].likely[0] != by_directory
    assert places[clone].likely[1] == by_history
    (shop / CONFIG).parent.mkdir()
    (shop / CONFIG).write_text('[project]\nid = "the-shop"\n')
    assert locate_project(home, shop).likely == ("id:the-shop",)


def test_a_project_has_rules_of_its_own_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert coordination_rules_in(path).thresholds.stale_ms == 600_000
    path.write_text("[coordination]\nenforce = true\nstale_minutes = 45\ngone_minutes = 30\n")

    rules = coordination_rules_in(path)

    assert (rules.enforce, rules.thresholds.stale_ms) == (True, 45 * 60_000)
    assert rules.thresholds.window_ms == rules.thresholds.stale_ms, "stale comes before gone"
    for wrong in ("stale_minutes = 0", "stale = 3"):
        path.write_text(f"[coordination]\n{wrong}\n")
        with pytest.raises(SettingsBroken):
            coordination_rules_in(path)


def test_outside_services_are_off_unless_the_settings_name_them(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    off = OutsideServices("", "", "warn", beads=False, beads_command="bd")
    assert outside_services_in(config) == off
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
    config.write_text('[coordination]\nmail_down = "ignore"\n')
    with pytest.raises(SettingsBroken, match="mail_down"):
        outside_services_in(config)
