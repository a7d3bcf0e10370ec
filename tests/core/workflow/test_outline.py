"""The shape of a workflow as data."""

from inline_snapshot import snapshot

from interlock.core.workflow import outline
from interlock.core.workflow.compiler import Compilation, compile_content
from interlock.core.workflow.outline import OutlinePiece, StepMark

FLOW = b"""{
  "id": "shape", "name": "Shape", "description": "d", "version": "1.0.0",
  "steps": [
    {"id": "look", "title": "Look", "prompt": "Look.",
     "userOnly": {"reason": "needs_user_choice", "question": "Which one?"}},
    {"id": "round", "type": "loop", "title": "Again", "loop": {"type": "while", "maxIterations": 3},
     "runCondition": {"var": "deep"},
     "body": [{"id": "do", "title": "Do", "prompt": "Do."}]},
    {"id": "end", "title": "End", "prompt": "End.", "runCondition": {"var": "deep"},
     "requireConfirmation": {"kind": "human_approval", "question": "Shall it end?"},
     "outputContract": {"contractRef": "coding_handoff", "required": false}}
  ]
}"""


def test_the_drawing_names_conditions_and_leaves_open_what_may_be_skipped() -> None:
    compiled = compile_content(FLOW)
    assert isinstance(compiled, Compilation), compiled

    assert outline.mermaid(compiled.pinned.workflow) == snapshot("""\
flowchart TD
  begin((start))
  finish((done))
  n1["Look"]
  subgraph n2["Again, at most 3"]
    n3["Do"]
  end
  n3 -. again .-> n3
  n1 -->|`deep` is set and not false, 0 or empty| n3
  n4{{"End"}}
  n3 -->|`deep` is set and not false, 0 or empty| n4
  n1 -->|`deep` is set and not false, 0 or empty| n4
  begin --> n1
  n4 --> finish
  n3 --> finish
  n1 --> finish\
""")


def test_the_pieces_are_nested_and_say_what_their_titles_do_not() -> None:
    compiled = compile_content(FLOW)
    assert isinstance(compiled, Compilation), compiled

    look, again, end = outline.pieces(compiled.pinned.workflow)

    assert look == OutlinePiece(
        "step",
        "look",
        "Look",
        1,
        "",
        (StepMark("user", "needs the user: Which one?"),),
        (),
        "/steps/0",
    )
    assert (again.kind, again.id, [inner.id for inner in again.body]) == ("loop", "round", ["do"])
    assert again.how == (
        "as long as the agent decides to go on, at most 3 passes,"
        " only when `deep` is set and not false, 0 or empty"
    )
    assert again.body[0].pointer == "/steps/1/body/0"
    assert [mark.kind for mark in end.marks] == ["condition", "approval", "contract"]
    assert end.marks[-1].words == "may submit coding_handoff"
    assert end.number == 3
