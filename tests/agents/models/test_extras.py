"""The command that adds an extra: it fits how Interlock was installed, and it works."""

import json
import shlex
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from interlock.agents.models.providers import Installation, current_installation, extra_hint

ROOT = Path(__file__).parents[3]
PYTHON = "/opt/my tools/bin/python"
COMMIT = "6e5fcbb6740b6f7e1cb05d8b2261317e620b76be"
RECEIPTS = {"uv": "uv-receipt.toml", "pipx": "pipx_metadata.json", "pip": "", "no pip": ""}
COMMANDS = {
    "uv": ["uv", "tool", "install", "--force"],
    "pipx": ["pipx", "install", "--force"],
    "pip": [PYTHON, "-m", "pip", "install"],
    "no pip": ["uv", "pip", "install", "--python", PYTHON],
}


@pytest.fixture(params=RECEIPTS)
def tool(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A checkout in a directory that a shell would take apart."""
    source = tmp_path / "it's my #1 [copy]" / "interlock"
    source.mkdir(parents=True)
    return source


def installed(prefix: Path, tool: str, **direct_url: object) -> Installation:
    """Return an installation by one of the tools, as it is found in its environment."""
    if receipt := RECEIPTS[tool]:
        (prefix / receipt).touch()
    record = json.dumps(direct_url) if direct_url else ""
    return Installation(prefix, PYTHON, has_pip=tool == "pip", direct_url=record)


def printed_command(installation: Installation) -> list[str]:
    said, _, command = extra_hint("driver", installation).partition(": ")
    assert said == "Install it with"
    return shlex.split(command)


def test_the_command_names_the_source_and_the_tool(tmp_path: Path, tool: str, source: Path) -> None:
    url, forge = source.as_uri(), "https://forge.example/team/interlock.git"
    commit = {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}
    archive = tmp_path / "interlock-0.1.0-py3-none-any.whl"
    archive.touch()
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"url": url, "dir_info": {}}, [f"interlock[driver] @ {url}"]),
        ({"url": url, "dir_info": {"editable": True}}, ["--editable", f"{source}[driver]"]),
        ({"url": forge, "vcs_info": commit}, [f"interlock[driver] @ git+{forge}@{COMMIT}"]),
        (
            {"url": url, "vcs_info": commit},
            [f"interlock[driver] @ git+file://localhost{url.removeprefix('file://')}@{COMMIT}"],
        ),
        (
            {"url": forge, "vcs_info": commit, "subdirectory": "a/b"},
            [f"interlock[driver] @ git+{forge}@{COMMIT}#subdirectory=a/b"],
        ),
        (
            {"url": archive.as_uri(), "archive_info": {"hash": "sha256=0"}},
            [f"interlock[driver] @ {archive.as_uri()}"],
        ),
    ]
    for direct_url, arguments in cases:
        command = printed_command(installed(tmp_path, tool, **direct_url))
        assert command == COMMANDS[tool] + arguments


def test_without_a_source_no_index_is_named(tmp_path: Path, tool: str) -> None:
    gone = (tmp_path / "gone").as_uri()
    records = ["", "{", "[]", '{"url": 1}', json.dumps({"url": gone, "dir_info": {}})]
    for record in records:
        installation = installed(tmp_path, tool)
        hint = extra_hint("driver", Installation(tmp_path, PYTHON, installation.has_pip, record))
        assert PYTHON in hint
        assert "extra `driver`" in hint
        assert "pip install" not in hint
        assert "interlock[" not in hint


PROGRAM = """
import sys
sys.modules["pydantic_ai"] = None
from interlock.agents.models.credentials import ApiKey, Credentials
from interlock.agents.models.model_port import ModelUnavailable
from interlock.agents.models.providers import open_model
try:
    open_model("anthropic:claude", credentials=Credentials({"anthropic": ApiKey("k")}))
except ModelUnavailable as unavailable:
    print(unavailable)
    print(unavailable.hint)
"""


def test_the_installation_is_that_of_this_process() -> None:
    installed = current_installation()

    assert (installed.prefix, installed.executable) == (Path(sys.prefix), sys.executable)
    assert installed.has_pip == (find_spec("pip") is not None)
    assert extra_hint("driver", installed).startswith("Install it with: ")


@pytest.mark.long
def test_the_printed_command_installs_the_same_source_again(tmp_path: Path, source: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src/interlock", source / "src/interlock")
    venv.create(tmp_path / "an env", symlinks=True)
    python = tmp_path / "an env/bin/python"
    [packages] = (tmp_path / "an env").glob("lib/python3*/site-packages")
    # The packages that Interlock needs, and pip, come from here.
    (packages / "more.pth").write_text(next(path for path in sys.path if "site-packages" in path))
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet")
    run([str(python), "-m", "pip", "install", str(source), *offline])

    what, hint = run([str(python), "-c", PROGRAM]).splitlines()

    assert what == (
        "Models of anthropic need the extra `driver`, which is not installed"
        " (no module `pydantic_ai`)."
    )
    command = hint.partition(": ")[2]
    assert shlex.split(command)[0] == str(python)
    [record] = packages.glob("interlock-*.dist-info/direct_url.json")
    record.unlink()
    run(["sh", "-c", f"{command} {' '.join(offline)}"])
    [record] = packages.glob("interlock-*.dist-info/direct_url.json")
    assert json.loads(record.read_text())["url"] == source.as_uri()


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout
