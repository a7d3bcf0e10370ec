"""Parse a workflow file: into the workflow, or into everything that is wrong with its form."""

import re
import types
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from interlock.core import canonical
from interlock.core.canonical import NotCanonical, escape_pointer_part
from interlock.core.workflow import json_locations
from interlock.core.workflow.definition import FILE_BYTES_MAX, Workflow
from interlock.core.workflow.problems import InvalidWorkflow, Problem, suggest_nearest
from interlock.core.workflow.workrail_compat import NormalisationReport, normalise_foreign

PROBLEMS_MAX = 50  # reported of one file; the rest can wait
ITEMS_MAX = 5_000  # of a list that is looked through for problems


class ParsedWorkflow(msgspec.Struct, frozen=True):
    """A file that has the form of a workflow. Its content may still make no sense."""

    workflow: Workflow
    text: str
    warnings: tuple[Problem, ...] = ()


class MalformedWorkflow(InvalidWorkflow, frozen=True):
    """A JSON object that has not the form of a workflow. What it means may be wrong as well."""

    text: str
    document: dict[str, Any]


def parse_workflow(content: bytes) -> ParsedWorkflow | InvalidWorkflow:
    if len(content) > FILE_BYTES_MAX:
        message = f"the file has {len(content)} bytes or more; {FILE_BYTES_MAX} are taken"
        return InvalidWorkflow(
            (Problem("size", "", message, "Split it, or move texts into references."),)
        )
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = content.decode()
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return InvalidWorkflow((_decode_problem(content, error),))
    try:
        canonical.check_canonical(document)
    except NotCanonical as error:
        return invalid_with_locations(text, (Problem("value", error.pointer, error.reason),))
    if not isinstance(document, dict):
        return InvalidWorkflow((Problem("json", "", "a workflow is a JSON object"),))
    report = NormalisationReport()
    problems = [
        Problem("repeated-key", pointer, "this key stands here twice; only one would count")
        for pointer in json_locations.repeated_keys(text)
    ]
    normalised = normalise_foreign(cast("dict[str, Any]", document), report)
    workflow: Workflow | None = None
    try:
        workflow = msgspec.convert(normalised, Workflow)
    except msgspec.ValidationError:
        problems += islice(collect_problems(Workflow, normalised, ""), PROBLEMS_MAX)
        assert problems, "what cannot be read has a reason"
    if problems or workflow is None:
        reported = (
            _with_original_pointer(problem, report) for problem in (*problems, *report.warnings)
        )
        return MalformedWorkflow(with_locations(text, tuple(reported)), text, normalised)
    return ParsedWorkflow(workflow, text, tuple(report.warnings))


def invalid_with_locations(text: str, problems: tuple[Problem, ...]) -> InvalidWorkflow:
    """Return the problems, each with its line and column, in the order of the file."""
    return InvalidWorkflow(with_locations(text, problems))


def with_locations(text: str, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    if not problems:
        return ()
    positions = json_locations.locate(text, {problem.pointer for problem in problems})
    located = [
        msgspec.structs.replace(
            problem, line=positions[problem.pointer].line, column=positions[problem.pointer].column
        )
        if problem.pointer in positions
        else problem
        for problem in dict.fromkeys(problems)
    ]
    return tuple(sorted(located, key=lambda problem: (problem.line, problem.column)))


def collect_problems(cls: type[msgspec.Struct], value: Any, at: str) -> Iterator[Problem]:
    """Yield everything that keeps `value` from being a `cls`, field by field."""
    if not isinstance(value, dict):
        yield Problem("value", at, f"an object is wanted, not {_kind_of(value)}")
        return
    members = cast("dict[str, Any]", value)
    fields = {field.encode_name: field for field in msgspec.structs.fields(cls)}
    tag = cls.__struct_config__.tag_field
    for name in sorted(members.keys() - fields.keys() - {tag}):
        message = f"there is no field `{name}` here"
        yield Problem(
            "field", f"{at}/{escape_pointer_part(name)}", message, suggest_nearest(name, fields)
        )
    for name, field in fields.items():
        if name in members:
            yield from _collect_value(
                field.type, members[name], f"{at}/{escape_pointer_part(name)}"
            )
        elif field.required:
            yield Problem("field", at, f"`{name}` is missing")


def _collect_value(expected: Any, value: Any, at: str) -> Iterator[Problem]:
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        inner = _collect_parts(expected, value, at)
        first = next(inner, None)  # lazily: nobody reads more than a few
        if first is not None:
            yield first
            yield from inner
        else:
            if choices := _choices(expected):
                yield Problem("value", at, *_choice_message(value, choices))
                return
            # msgspec says "message - at `$.steps[0].id`"; the pointer says where already.
            message = _plain_message(str(error).partition(" - at `")[0])
            yield Problem("value", at, message, _type_description(expected))


def _choices(expected: Any) -> list[str]:
    """Return the texts of which the value must be one, where nothing else is allowed."""
    options = [option for option in union_options(expected) if option is not type(None)]
    if not all(get_origin(option) is Literal for option in options):
        return []
    return [choice for option in options for choice in get_args(option)]


def _choice_message(written: Any, choices: list[str]) -> tuple[str, str]:
    """Return what is wrong with a value that is none of the choices, and a suggestion."""
    message = f"one of these is wanted: {', '.join(f'`{choice}`' for choice in choices)}"
    near = suggest_nearest(written, choices) if isinstance(written, str) else ""
    return message, near if near.startswith("Did") else ""


def _collect_parts(expected: Any, value: Any, at: str) -> Iterator[Problem]:
    """Yield the problems of the parts of a value, where it has parts."""
    options = union_options(expected)
    structs = [struct for struct in options if is_struct(struct)]
    if structs and isinstance(value, dict):
        chosen = matching_struct(structs, cast("dict[str, Any]", value))
        if chosen is None:
            tags = [str(struct.__struct_config__.tag) for struct in structs]
            field = str(structs[0].__struct_config__.tag_field)
            written = cast("dict[str, Any]", value).get(field)
            pointer = f"{at}/{field}" if field in value else at
            yield Problem("value", pointer, *_choice_message(written, tags))
        else:
            yield from collect_problems(chosen, value, at)
    for option in options:
        origin, type_arguments = get_origin(option), get_args(option)
        if origin is tuple and isinstance(value, list):
            for index, item in enumerate(cast("list[Any]", value)[:ITEMS_MAX]):
                yield from _collect_value(type_arguments[0], item, f"{at}/{index}")
        elif origin is dict and isinstance(value, dict):
            for name, item in cast("dict[str, Any]", value).items():
                yield from _collect_value(
                    type_arguments[1], item, f"{at}/{escape_pointer_part(name)}"
                )


def union_options(expected: Any) -> tuple[Any, ...]:
    if get_origin(expected) is Annotated:
        return union_options(get_args(expected)[0])
    if get_origin(expected) in (Union, types.UnionType):
        return tuple(option for part in get_args(expected) for option in union_options(part))
    return (expected,)


def is_struct(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, msgspec.Struct)


def matching_struct(structs: list[type[msgspec.Struct]], value: dict[str, Any]) -> type | None:
    if len(structs) == 1:
        return structs[0]
    field = structs[0].__struct_config__.tag_field
    assert field is not None, "one of several is told by its tag"
    return next((s for s in structs if s.__struct_config__.tag == value.get(field)), None)


def _type_description(expected: Any) -> str:
    """Return the description of the type, where it has one."""
    metas = get_args(expected)[1:] if get_origin(expected) is Annotated else ()
    return next((meta.description for meta in metas if meta.description), "")


def _plain_message(message: str) -> str:
    """Return a message of msgspec, for somebody who does not know Python."""
    if message.endswith("of length >= 1"):
        return "it is empty"
    expectation, _, actual = message.partition("got ")
    for type_name, word in _TYPE_WORDS.items():
        expectation, actual = (
            re.sub(rf"\b{type_name}\b", word, part) for part in (expectation, actual)
        )
    message = f"{expectation}got {actual}" if actual else expectation
    return message[:1].lower() + message[1:].replace("`", "").replace(" | ", " or ")


_TYPE_WORDS = {
    "str matching regex": "a text like",
    "str": "a text",
    "array": "a list",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "object": "an object",
}


def _kind_of(value: Any) -> str:
    kinds = {"list": "a list", "str": "a text", "bool": "true or false", "NoneType": "null"}
    return kinds.get(type(value).__name__, "a number")


def _decode_problem(content: bytes, error: Exception) -> Problem:
    if isinstance(error, UnicodeDecodeError):
        return _problem_after(content[: error.start], f"this is not UTF-8 text: {error.reason}")
    if isinstance(error, RecursionError):
        return Problem("json", "", "it is nested too deeply")
    # msgspec counts bytes: "JSON is malformed: … (byte 17)".
    message, _, byte = str(error).removeprefix("JSON is malformed: ").rpartition(" (byte ")
    if not byte.rstrip(")").isdigit():
        return _problem_after(content.rstrip(), f"this is not JSON: {error}")  # the end is missing
    return _problem_after(content[: int(byte.rstrip(")"))], f"this is not JSON: {message}")


def _problem_after(readable: bytes, message: str) -> Problem:
    """Return a problem at the place up to which the file could be read."""
    last_line = readable.rpartition(b"\n")[2].decode(errors="replace")
    line = readable.count(b"\n") + 1
    return Problem("json", "", message, line=line, column=len(last_line) + 1)


def _with_original_pointer(problem: Problem, report: NormalisationReport) -> Problem:
    pointer = report.original_pointers.get(problem.pointer, problem.pointer)
    return msgspec.structs.replace(problem, pointer=pointer)
