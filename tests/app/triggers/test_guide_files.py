"""The files that the guide tells people to copy are sound."""

import re
import tomllib
from pathlib import Path

from interlock.app.context import open_app
from interlock.app.triggers.overview import find_problems
from interlock.app.triggers.trigger_book import ProjectTrigger
from interlock.app.unattended.driver_settings import driver_settings
from interlock.app.unattended.forge_settings import forge_settings
from interlock.workspace.projects.trigger_file import TRIGGERS, read_trigger_file

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "automations.md"
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_everything_in_the_guide_can_be_copied(home: Path, tmp_path: Path) -> None:
    (config,) = [block for block in BLOCKS if "[forges." in block]
    files = [block for block in BLOCKS if "source" in tomllib.loads(block).popitem()[1]]
    for name in ("anthropic", "gitlab-token", "gitlab-webhook"):
        config = config.replace(f"~/.keys/{name}", str(tmp_path / name))
        (tmp_path / name).write_text("a secret\n")
        (tmp_path / name).chmod(0o600)
    config = config.replace("anthropic:MODEL", "anthropic:claude-sonnet-4-5")
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text(config)
    (tmp_path / TRIGGERS).parent.mkdir()
    (tmp_path / TRIGGERS).write_text("\n".join(files))

    found = read_trigger_file(tmp_path)

    assert found.faults == ()
    assert list(found.triggers) == ["review", "nightly"]
    assert driver_settings(home).model
    assert list(forge_settings(home)) == ["work"]
    app = open_app(home)
    for name, trigger in found.triggers.items():
        assert find_problems(app, ProjectTrigger(name, str(tmp_path), trigger)) == ()
    app.close()


def test_the_guide_speaks_of_every_setting() -> None:
    table = GUIDE.read_text().partition("## A trigger")[2].partition("## What is certain")[0]
    spoken = set(re.findall(r"`([a-z_]+)`", table))
    fields = set(ProjectTrigger.__annotations__["trigger"].__struct_fields__)

    assert fields <= spoken
