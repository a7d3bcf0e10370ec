"""An operation: the declaration of its route, its checks and its documentation."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, cast, get_args

import msgspec

from interlock.app.context import App
from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal
from interlock.server.http_refusals import AnyCode, HttpRefusal
from interlock.server.loosening import Loosens

Method = Literal["GET", "POST", "DELETE"]
Schema = dict[str, Any]
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_BOOLEAN = {"true": True, "false": False}
_ERROR_LOCATION = re.compile(r"(?P<what>.*) - at `(key in )?\$\.?(?P<where>.*)`", re.DOTALL)


class Parameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The parameters in the path and in the query, by name."""


class NoParameters(Parameters, frozen=True):
    pass


class Body(msgspec.Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """The JSON body of a request."""


class FileAnswer(msgspec.Struct, frozen=True):
    """An answer that is a file already."""

    name: str
    content: bytes


class Operation(msgspec.Struct, frozen=True, dict=True):
    name: str
    method: Method
    path: str
    """Below the prefix. Names in braces are fields of `parameters`; other fields are the query."""
    summary: str
    call: Callable[[App, Any, Any], object]
    """Returns the answer, or a refusal of the domain, explained or not yet."""
    answer: Any
    """The type of the answer."""
    parameters: type[Parameters]
    body: Any = None
    """The type of the body; `bytes` if the document is checked elsewhere."""
    codes: tuple[AnyCode, ...] = ()
    """The codes with which it may be refused, besides those of all operations."""
    about: str = ""
    media_type: str = "application/json"
    is_writing: bool = False
    is_patient: bool = False
    """It asks somebody else, which may take long: nobody else waits for its thread."""
    loosens: Loosens = False
    """Whether it lets agents do more, by the body of the request: then it wants a person."""

    @cached_property
    def properties(self) -> dict[str, Schema]:
        """The schema of each parameter."""
        (_,), components = msgspec.json.schema_components((self.parameters,), ref_template="{name}")
        return components[self.parameters.__name__]["properties"]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)}", self.path))

    @cached_property
    def needs_body(self) -> bool:
        """Whether a request must have a body."""
        if self.body in (None, bytes):
            return self.body is bytes
        return any(field.required for field in msgspec.structs.fields(self.body))


def rest_operation(
    method: Method,
    path: str,
    summary: str,
    *,
    answer: Any = None,
    codes: tuple[AnyCode, ...] = (),
    about: str = "",
    media_type: str = "application/json",
    is_writing: bool | None = None,
    is_patient: bool = False,
    loosens: Loosens = False,
) -> Callable[[Callable[..., object]], Operation]:
    """Make an operation of a function `(app, at)` or `(app, at, body)`.

    Its name comes from the function's name; its parameters, its body and, unless `answer` is
    given, the type of its answer come from the annotations. A GET that records what has become
    true meanwhile has `is_writing`.
    """

    def declare(function: Callable[..., object]) -> Operation:
        types = function.__annotations__
        body = types.get("body")

        def call(app: App, at: Parameters, sent: Any) -> object:
            return function(app, at) if body is None else function(app, at, sent)

        words = function.__name__.strip("_").split("_")
        return Operation(
            name=words[0] + "".join(word.capitalize() for word in words[1:]),
            method=method,
            path=path,
            summary=summary,
            call=call,
            answer=answer or _answer_type(types["return"]),
            parameters=next(kind for kind in types.values() if _is_a(kind, Parameters)),
            body=body,
            codes=codes,
            about=about,
            media_type=media_type,
            is_writing=method != "GET" if is_writing is None else is_writing,
            is_patient=is_patient,
            loosens=loosens,
        )

    return declare


def _answer_type(returned: Any) -> Any:
    """Return the kinds that a function returns, apart from refusals."""
    refusals = (Refusal, Explanation, HttpRefusal)
    kinds: tuple[Any, ...] = get_args(returned) or (returned,)
    answer, *others = (kind for kind in kinds if not _is_a(kind, *refusals))
    for other in others:
        answer |= other
    return answer


def _is_a(kind: Any, *bases: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, bases)


def parameters_of(
    operation: Operation, path: Mapping[str, str], query: Iterable[tuple[str, str]]
) -> Parameters | HttpRefusal:
    """The checked parameters of a request, or a refusal that names the wrong one."""
    values: dict[str, str | int | bool] = dict(path)
    query_names = [name for name in operation.properties if name not in operation.in_path]
    for name, value in query:
        if name not in query_names:
            message = f"There is no parameter `{name[:100]}` here"
            hint = (
                f"Known are: {', '.join(query_names)}." if query_names else "Leave the query out."
            )
            return HttpRefusal("invalid_arguments", message, hint)
        if name in values:
            return HttpRefusal("invalid_arguments", f"`{name}` is given twice", "Give it once.")
        values[name] = _parse_query_value(value, operation.properties[name])
    try:
        return msgspec.convert(values, operation.parameters)
    except msgspec.ValidationError as error:
        message, location = _split_error(error)
        return HttpRefusal(
            "invalid_arguments",
            f"`{location}`: {message}" if location else message,
            "`/api/v2/openapi.json` says what each parameter may be.",
        )


def body_of(operation: Operation, content: bytes, media_type: str) -> Any:
    """The checked body of a request, or a refusal that says where in the document it is wrong."""
    if operation.body is None:
        return None
    if not content and not operation.needs_body:
        return operation.body()
    if media_type.partition(";")[0].strip().casefold() != "application/json":
        message = (
            f"The body is `{media_type[:100]}`" if media_type else "The body has no media type"
        )
        hint = "Send JSON, and `Content-Type: application/json`."
        return HttpRefusal("wrong_media_type", message, hint)
    if operation.body is bytes:
        return content
    try:
        return msgspec.json.decode(content, type=operation.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message, location = _split_error(error)
        return HttpRefusal(
            "invalid_arguments",
            f"`{location or 'the body'}`: {message}",
            "`/api/v2/openapi.json` says what the body may be.",
        )


def _parse_query_value(text: str, schema: Schema) -> str | int | bool:
    """The number or boolean that a text in a query stands for, if the schema asks for one."""
    match schema.get("type"):
        case "integer" if _WHOLE_NUMBER.fullmatch(text):
            return int(text)
        case "boolean":
            return _BOOLEAN.get(text, text)
        case _:
            return text


def _split_error(error: Exception) -> tuple[str, str]:
    """The problem, and its location in the document."""
    match = _ERROR_LOCATION.fullmatch(str(error))
    return (cast("str", match["what"]), cast("str", match["where"])) if match else (str(error), "")
