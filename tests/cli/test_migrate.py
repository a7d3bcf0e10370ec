"""`interlock migrate handoff`, as typed."""

import json
from pathlib import Path

import pytest

from interlock.app.gate.opt_in import opt_in
from tests.cli.conftest import Terminal

TEXT = "## Active Feature\nDark mode\n## Decisions\n- Variables\n## Next Steps\n- Ask design\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    opt_in(tmp_path, "standard")
    path = tmp_path / "HANDOFF.md"
    path.write_text(TEXT)
    return path


def test_a_file_is_looked_at_then_taken_over_then_known(
    typed: Terminal, tmp_path: Path, file: Path
) -> None:
    foreseen = typed("migrate", "handoff", "HANDOFF.md", "--dry-run")
    assert (foreseen.code, foreseen.out) == (
        0,
        "would create: planning/FEATURE-001-dark-mode.md\n"
        "would create: decisions/ADR-001-variables.md\n",
    )
    assert foreseen.err == ("A session would go on with feature “Dark mode”, task “Ask design”.\n")
    assert not (tmp_path / ".interlock" / "notes").exists()

    done = typed("migrate", "handoff", "HANDOFF.md")
    state = json.loads(typed("session", "get-state").out)
    assert (done.code, done.out) == (
        0,
        "created: planning/FEATURE-001-dark-mode.md\ncreated: decisions/ADR-001-variables.md\n"
        f"session: {state['sessionId']}\n",
    )
    assert (state["activeFeature"], state["activeTask"]) == ("Dark mode", "Ask design")

    again = typed("migrate", "handoff", "HANDOFF.md")
    assert (again.code, again.out) == (
        0,
        "already there: planning/FEATURE-001-dark-mode.md\n"
        "already there: decisions/ADR-001-variables.md\n",
    )
    assert again.err == "No session: the file was taken over before.\n"
    file.write_text(TEXT.replace("Ask design", "Ask Kim"))
    changed = typed("migrate", "handoff", "HANDOFF.md")
    assert changed.out.startswith("kept: planning/FEATURE-001-dark-mode.md\nalready there: ")
    assert changed.err.startswith("hint: what was kept says something else by now; compare it.\n")


def test_what_cannot_be_taken_over_is_refused(typed: Terminal, tmp_path: Path, file: Path) -> None:
    missing = typed("migrate", "handoff", "none.md")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err == (
        "error: `none.md` cannot be taken over: no such file or directory\n\n"
        "hint: Name the hand-off file of the project, such as `HANDOFF.md`.\n"
    )
    as_json = typed("migrate", "handoff", str(tmp_path), "--json")
    assert (as_json.code, json.loads(as_json.out)["code"]) == (1, "invalid_arguments")
    file.write_text("")
    assert typed("migrate", "handoff", "HANDOFF.md").out == (
        "HANDOFF.md says nothing that could be a note.\n"
    )


def test_an_agent_may_do_it(typed: Terminal, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")

    assert file.exists()
    assert typed("migrate", "handoff", "HANDOFF.md").code == 0
