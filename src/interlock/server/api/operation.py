"""An operation: the one entry from which its route, its checks and its documentation come."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar, cast

import msgspec

from interlock.app.context import App
from interlock.server.http_refusals import AnyCode, HttpRefusal

Method = Literal["GET", "POST", "DELETE"]
Schema = dict[str, Any]
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_BOOLEAN = {"true": True, "false": False}
_ERROR_LOCATION = re.compile(r"(?P<what>.*) - at `(key in )?\$\.?(?P<where>.*)`", re.DOTALL)


class Parameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What stands in the path and in the query, by name."""


class NoParameters(Parameters, frozen=True):
    pass


class Body(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """What is sent along as JSON."""


class FileAnswer(msgspec.Struct, frozen=True):
    """An answer that is a file already."""

    name: str
    content: bytes


P = TypeVar("P", bound=Parameters)
B = TypeVar("B")


class Operation(msgspec.Struct, frozen=True, dict=True):
    name: str
    method: Method
    path: str
    """Below the prefix. What is in braces is a field of `parameters`, the others are the query."""
    summary: str
    call: Callable[[App, Any, Any], object]
    """Answers, or gives back why not: a refusal of the domain, in words or not yet."""
    answer: Any
    """The type that is answered."""
    parameters: type[Parameters]
    body: Any = None
    """The type that is sent; `bytes` where the document is checked elsewhere."""
    codes: tuple[AnyCode, ...] = ()
    """Why it may be refused, beside what may happen to all of them."""
    about: str = ""
    media_type: str = "application/json"
    is_writing: bool = False

    @cached_property
    def properties(self) -> dict[str, Schema]:
        """The schema of each parameter."""
        (_,), found = msgspec.json.schema_components((self.parameters,), ref_template="{name}")
        return found[self.parameters.__name__]["properties"]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def needs_body(self) -> bool:
        """Whether leaving the body out is wrong."""
        if self.body in (None, bytes):
            return self.body is bytes
        return any(field.required for field in msgspec.structs.fields(self.body))


def read_operation(
    path: str,
    name: str,
    summary: str,
    call: Callable[[App, P], object],
    *,
    parameters: type[P],
    answer: Any,
    codes: tuple[AnyCode, ...] = (),
    about: str = "",
    is_writing: bool = False,
) -> Operation:
    """`is_writing`: looking may record what has become so meanwhile."""

    def answered(app: App, at: P, _: None) -> object:
        return call(app, at)

    return Operation(
        name,
        "GET",
        path,
        summary,
        answered,
        answer,
        parameters,
        codes=codes,
        about=about,
        is_writing=is_writing,
    )


def change_operation(
    path: str,
    name: str,
    summary: str,
    call: Callable[[App, P, B], object],
    *,
    parameters: type[P],
    body: type[B] | None = None,
    answer: Any,
    codes: tuple[AnyCode, ...] = (),
    about: str = "",
    method: Method = "POST",
    is_writing: bool = True,
) -> Operation:
    return Operation(
        name,
        method,
        path,
        summary,
        call,
        answer,
        parameters,
        body,
        codes,
        about,
        is_writing=is_writing,
    )


def parameters_of(
    operation: Operation, path: Mapping[str, str], query: Iterable[tuple[str, str]]
) -> Parameters | HttpRefusal:
    """What was asked for, checked. Says which parameter is wrong."""
    given: dict[str, str | int | bool] = dict(path)
    known = [name for name in operation.properties if name not in operation.in_path]
    for name, value in query:
        if name not in known:
            what = f"There is no parameter `{name[:100]}` here"
            hint = f"Known are: {', '.join(known)}." if known else "Leave the query out."
            return HttpRefusal("invalid_arguments", what, hint)
        if name in given:
            return HttpRefusal("invalid_arguments", f"`{name}` is given twice", "Give it once.")
        given[name] = _parse_query_value(value, operation.properties[name])
    try:
        return msgspec.convert(given, operation.parameters)
    except msgspec.ValidationError as error:
        what, where = _split_error(error)
        return HttpRefusal(
            "invalid_arguments",
            f"`{where}`: {what}" if where else what,
            "`/api/v2/openapi.json` says what each parameter may be.",
        )


def body_of(operation: Operation, content: bytes, media_type: str) -> Any:
    """What was sent, checked. Says where in the document it is wrong."""
    if operation.body is None:
        return None
    if not content and not operation.needs_body:
        return operation.body()
    if media_type.partition(";")[0].strip().casefold() != "application/json":
        what = f"The body is `{media_type[:100]}`" if media_type else "The body has no media type"
        hint = "Send JSON, and `Content-Type: application/json`."
        return HttpRefusal("wrong_media_type", what, hint)
    if operation.body is bytes:
        return content
    try:
        return msgspec.json.decode(content, type=operation.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        what, where = _split_error(error)
        return HttpRefusal(
            "invalid_arguments",
            f"`{where or 'the body'}`: {what}",
            "`/api/v2/openapi.json` says what the body may be.",
        )


def _parse_query_value(text: str, schema: Schema) -> str | int | bool:
    """The number or truth value that a text in a query stands for, where one is wanted."""
    match schema.get("type"):
        case "integer" if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        case "boolean":
            return _BOOLEAN.get(text, text)
        case _:
            return text


def _split_error(error: Exception) -> tuple[str, str]:
    """What is wrong, and where."""
    found = _ERROR_LOCATION.fullmatch(str(error))
    return (cast("str", found["what"]), cast("str", found["where"])) if found else (str(error), "")
