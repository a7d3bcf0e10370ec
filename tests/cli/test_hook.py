"""`interlock hook` with names that it does not know: a team's files may be newer than it."""

import io
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Terminal


@pytest.mark.parametrize(
    ("host", "event"), [("claude-code", "pre-thought"), ("newcomer", "pre-tool"), ("x", "y")]
)
def test_what_is_not_known_blocks_nobody_and_is_said(
    typed: Terminal, monkeypatch: pytest.MonkeyPatch, host: str, event: str
) -> None:
    typed("init")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))

    said = typed("hook", "--host", host, "--event", event)

    assert (said.code, said.out) == (0, "")
    assert f"`{host} {event}` is not known here" in said.err


def test_what_was_put_elsewhere_is_taken_out_though_the_variable_is_gone(
    typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "codex"
    elsewhere.mkdir()
    config = elsewhere / "config.toml"
    config.write_text('model = "x"\n')
    monkeypatch.setenv("CODEX_HOME", str(elsewhere))
    typed("install", "codex")
    assert "mcp_servers" in config.read_text()
    monkeypatch.delenv("CODEX_HOME")

    typed("uninstall", "codex")

    assert [path.name for path in elsewhere.rglob("*")] == ["config.toml"]
    assert config.read_text() == 'model = "x"\n'
