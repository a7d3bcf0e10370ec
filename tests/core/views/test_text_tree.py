"""The run graph in a terminal: notes stand beside the step that they were submitted for."""

import re
from pathlib import Path

from interlock.app.context import App
from interlock.core.views.graph import run_graph
from interlock.core.views.text_tree import draw_tree
from tests.core.views.driven_runs import Driven, step


def drawn(run: Driven) -> list[str]:
    lines = draw_tree(run_graph(run.run.run, run.envelopes))
    return [re.sub(r"  node_\w+", "", line) for line in lines]


def test_notes_stand_beside_their_step(app: App, tmp_path: Path) -> None:
    asks = {"requireConfirmation": {"kind": "human_approval"}}
    deep = step("deep", runCondition={"var": "depth", "equals": "full"})
    run = Driven(app, tmp_path, step("look"), step("plan", **asks), deep, step("build"))

    run.hand_in("Looked").hand_in("").hand_in("Planned").decide("granted")
    run.hand_in("Built")

    assert drawn(run) == [
        "● Look  “Looked”",
        "● Plan  “Planned”",
        "✗ not accepted: Plan",
        "⏸ approval of plan",
        "· skipped: deep",
        "● Build  “Built”",
        "● complete  ← here",
    ]


def test_a_branch_has_the_notes_of_its_own_attempt(app: App, tmp_path: Path) -> None:
    run = Driven(app, tmp_path, step("look"), step("build"), step("end"))
    first = run.token

    run.hand_in("One way").hand_in("Built")
    run.hand_in("Another way", token=first)

    assert drawn(run) == [
        "● Look  “Another way”",
        "│ ○ Look, another attempt  “One way”",
        "│ ● Build  “Built”",
        "│ ● End",
        "● Build  ← here",
    ]
