"""What is shipped for the console: all that it needs, nothing that is not what it says."""

import hashlib
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from interlock.server.assets import STATIC_DIRECTORY

ROOT = Path(__file__).parents[2]


def test_vendored_files_are_what_was_published() -> None:
    told = tomllib.loads((STATIC_DIRECTORY / "VENDORED.toml").read_text())
    hashes = {
        name: hashlib.sha256((STATIC_DIRECTORY / name).read_bytes()).hexdigest() for name in told
    }

    assert hashes == {name: about["sha256"] for name, about in told.items()}
    assert {path.name for path in STATIC_DIRECTORY.glob("*.min.js")} == set(told)


@pytest.mark.slow
def test_the_wheel_brings_the_console_and_stays_small(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        sizes = {one.filename: one.compress_size for one in packed.infolist()}
    shipped = {name for name in sizes if name.startswith("interlock/server/")}
    wanted = {
        f"interlock/{path.relative_to(ROOT / 'src/interlock')}"
        for kind in ("templates", "static")
        for path in (ROOT / "src/interlock/server" / kind).iterdir()
    }

    assert "interlock/mcp/snapshot.txt" in sizes
    assert wanted <= shipped
    assert sum(sizes[name] for name in shipped) < 400_000
