"""Look up the names of functions and features, and report those that do not exist."""

from collections.abc import Callable, Iterator, Mapping

from interlock.core.workflow.builtins import FEATURES, strip_owner_prefix
from interlock.core.workflow.definition import Function, Step, Workflow
from interlock.core.workflow.problems import Problem, suggest_nearest, warning


def known_features(workflow: Workflow, problems: list[Problem]) -> tuple[str, ...]:
    names = [strip_owner_prefix(name, "features") for name in workflow.features]
    for index, name in enumerate(names):
        if name not in FEATURES:
            message = f"there is no feature `{workflow.features[index]}`"
            hint = suggest_nearest(name, FEATURES)
            problems.append(Problem("feature", f"/features/{index}", message, hint))
    return tuple(dict.fromkeys(name for name in names if name in FEATURES))


def functions_by_name(
    definitions: tuple[Function, ...], at: str, problems: list[Problem]
) -> dict[str, Function]:
    functions: dict[str, Function] = {}
    for index, function in enumerate(definitions):
        if function.name in functions:
            message = f"`{function.name}` is defined twice: the later definition counts"
            problems.append(warning("function", f"{at}/{index}/name", message))
        functions[function.name] = function
    return functions


def function_problems(
    step: Step,
    functions: Mapping[str, Function],
    workflow: Workflow,
    pointer_to: Callable[[str], str],
) -> Iterator[Problem]:
    """Report functions that `workflow` does not define: where its guidance explains them, or it
    comes from another engine, the agent can still know what is meant.
    """
    guidance = "\n".join(workflow.meta_guidance)
    references = enumerate(step.function_references)
    calls = enumerate(step.function_calls)
    for name, at in (
        *((name, f"/functionReferences/{index}") for index, name in references),
        *((call.name, f"/functionCalls/{index}/name") for index, call in calls),
    ):
        plain_name = name.removesuffix("()")
        if plain_name in functions:
            continue
        if workflow.is_foreign or plain_name in guidance:
            message = f"`{name}` is not among the `functionDefinitions`: its text is not shown here"
            yield warning("function", pointer_to(at), message)
        else:
            message = f"there is no function `{name}`"
            yield Problem("function", pointer_to(at), message, suggest_nearest(name, functions))
