"""The conversations that the gate knows: their state, and the project that governs them."""

from pathlib import Path

from interlock.app.gate import integrity
from interlock.core.gate.state import GateRow
from interlock.store import gate_rows


def governing_project(home: Path, host: str, host_session: str, cwd: Path) -> Path | None:
    """The project whose gate governs a conversation; None if there is none.

    Who comes before where: a bound conversation stays in its project wherever it goes.
    """
    state = gate_rows.read_state(home, host, host_session)
    if isinstance(state, GateRow):
        return Path(state.root)
    return integrity.governed_root(home, cwd)


def state_of(home: Path, host: str, host_session: str) -> GateRow | None:
    """The state of a conversation as the gate knows it; None if it does not."""
    state = gate_rows.read_state(home, host, host_session)
    return state if isinstance(state, GateRow) else None
