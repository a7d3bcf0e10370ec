"""Look up the names of functions and features, and report those that do not exist."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from interlock.core.workflow.builtins import FEATURE_CONFIGS, FEATURES, Feature, strip_owner_prefix
from interlock.core.workflow.definition import FeatureUse, Function, Step, Workflow
from interlock.core.workflow.parsing import collect_problems
from interlock.core.workflow.problems import Problem, suggest_nearest, warning


def known_features(workflow: Workflow, problems: list[Problem]) -> dict[str, Feature]:
    """Return the features that a file asks for, each with its settings worked in."""
    features: dict[str, Feature] = {}
    for index, written in enumerate(workflow.features):
        use = FeatureUse(written) if isinstance(written, str) else written
        name, at = strip_owner_prefix(use.id, "features"), f"/features/{index}"
        if name in FEATURES:
            features[name] = _configured_feature(name, use, f"{at}/config", problems)
        else:
            hint = suggest_nearest(name, FEATURES)
            problems.append(Problem("feature", at, f"there is no feature `{use.id}`", hint))
    return features


def _configured_feature(name: str, use: FeatureUse, at: str, problems: list[Problem]) -> Feature:
    feature = FEATURES[name]
    if not use.config:
        return feature
    config_type = FEATURE_CONFIGS.get(name)
    if config_type is None:
        problems.append(Problem("feature", at, f"the feature `{name}` has no settings"))
        return feature
    try:
        config = msgspec.convert(use.config, config_type)
    except msgspec.ValidationError:
        problems += collect_problems(config_type, use.config, at)
        return feature
    return msgspec.structs.replace(feature, procedure=(*feature.procedure, *config.procedure()))


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
