"""Values without which a run cannot go on from a step: what the next step speaks of, or loops over.

Where a workflow does not say which step sets them, the last step before they are needed asks.
"""

from collections.abc import Iterator, Mapping

from interlock.core.canonical import Json
from interlock.core.workflow import interpret, positions
from interlock.core.workflow.compiled_workflow import CompiledWorkflow
from interlock.core.workflow.interpret import Destination, Impasse
from interlock.core.workflow.packs import LoopControlArtifact
from interlock.core.workflow.placeholders import NOTES_PREFIX, look_up, placeholder_paths
from interlock.core.workflow.positions import Position


def missing_paths(
    workflow: CompiledWorkflow, position: Position, context: Mapping[str, Json]
) -> tuple[str, ...]:
    """Return the paths that are missing if the step at `position` is handed in with no more."""
    ways: list[LoopControlArtifact | None] = [None]
    if any(one.loop.takes_decisions for one in positions.enclosing_loops(workflow, position)):
        ways.append(LoopControlArtifact("stop"))
    found = (interpret.continue_from(workflow, position, context, way) for way in ways)
    return tuple(dict.fromkeys(path for way in found for path in _missing(workflow, way, context)))


def _missing(
    workflow: CompiledWorkflow, way: Destination | Impasse, context: Mapping[str, Json]
) -> Iterator[str]:
    if isinstance(way, Impasse):
        yield from (way.var,) if way.var else ()
    elif way.step and not workflow.shows_unset:
        scope = positions.scope(workflow, way.position, context)
        loops = positions.enclosing_loops(workflow, way.position)
        lists = {one.loop.item_var: one.loop.items for one in loops if one.loop.items}
        for text in (way.step.agent_role, way.step.prompt):
            for path in placeholder_paths(text):
                if not path.startswith(NOTES_PREFIX) and look_up(scope, path) is None:
                    yield lists.get(path.partition(".")[0], path)
