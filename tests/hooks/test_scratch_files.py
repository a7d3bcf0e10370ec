"""Files in the scratch directory of a session, which is in the data home, and the agent's tools."""

from pathlib import Path

import pytest

from interlock.core.gate.state import Mode
from interlock.sandbox.scratch import scratch_directory
from tests.hooks.scene import Scene
from tests.hooks.test_led_paths import answer


@pytest.mark.invariant("secrets-stay-unread")
@pytest.mark.parametrize("mode", ["planning", "coding"])
def test_what_a_command_wrote_to_its_scratch_directory_is_read_and_no_secret_by_it(
    scene: Scene, mode: Mode
) -> None:
    scene.goes_to(mode)
    (scene.home / "secret").write_text("x")
    scratch = Path(scratch_directory(str(scene.home), "host-1"))
    (scratch / "output").write_text("x")
    (scratch / "link").symlink_to(scene.home / "secret")
    (scratch / "folder").symlink_to(scene.home)

    for tool in ("Read", "Grep"):
        assert answer(scene, tool, {"path": f"{scratch}/output"}) == "allow"
        for name in ("link", "folder/secret", "folder", "../../secret"):
            assert answer(scene, tool, {"path": f"{scratch}/{name}"}) == "deny"
