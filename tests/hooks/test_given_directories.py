"""Where the names in a call count from: the directory that the call itself gives."""

import os

import pytest

from interlock.core.gate.state import Mode
from tests.hooks.scene import Scene
from tests.hooks.test_led_paths import answer, link


@pytest.mark.parametrize("mode", ["planning", "coding"])
def test_names_count_from_the_directory_that_a_call_gives(scene: Scene, mode: Mode) -> None:
    scene.goes_to(mode)
    (scene.home / "secret").write_text("x")
    folder = os.path.relpath(scene.home, scene.project)
    above, name = os.path.split(folder)

    for key in ("workdir", "working_directory", "dir_path", "directory", "cwd"):
        for where in (folder, str(scene.home), str(link(scene, scene.home, f"{mode}-{key}"))):
            assert answer(scene, "Bash", {"command": "cat secret", key: where}) == "deny", key
            write = {"command": "echo x > config.toml", key: where}
            assert answer(scene, "Bash", write) != "allow", key
    for pattern in ("s*", "*", "secre?", "[s]ecret"):
        read = f"cat {mode}-cwd/{pattern}"
        assert answer(scene, "Bash", {"command": read}) == "deny", read
    assert answer(scene, "Bash", {"command": f"rm {mode}-cwd/*"}) != "allow"
    for fields in (
        {"path": above, "glob": f"{name}/secret"},
        {"base": above, "x": f"{name}/secret"},
    ):
        assert answer(scene, "Grep", {"pattern": ".", **fields}) == "deny"
    assert answer(scene, "Bash", {"command": "cat a.py", "workdir": "."}) == "allow"
