"""The OpenAPI document, made from the same table of operations as the routes."""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from interlock import __version__
from interlock.app.admin.server_process import DEFAULT_PORT
from interlock.server.api.operation import Operation, Schema
from interlock.server.http_refusals import AnyCode, HttpRefusal, status_of

PREFIX = "/api/v2"
COMMON_CODES: dict[int, tuple[AnyCode, ...]] = {
    401: ("not_signed_in",),
    403: ("wrong_origin", "no_csrf", "needs_person"),
    421: ("wrong_host",),
    500: ("internal_error",),
    503: ("store_busy", "store_failed"),
}
"""The codes with which any operation may be refused, by status."""
BODY_CODES: tuple[AnyCode, ...] = ("wrong_media_type", "too_large")
API_DESCRIPTION = (
    "What Interlock keeps, for programs. Times are milliseconds since 1970, ids are whole. Whatever"
    " is not answered is `{code, error, hint}`: what is true, and what to do next.\n\nA program"
    " sends `Authorization: Bearer` and the content of the file `secret` in the data home. A page"
    " of the console has a cookie, and sends `X-CSRF-Token` with every change. What loosens the"
    " gate is refused to programs that an agent runs (`needs_person`). Requests must be made under"
    " the server's own name, and not by another site."
)
_REF = "#/components/schemas/{name}"
_ANY_OBJECT: Schema = {"type": "object"}


def build_document(operations: Iterable[Operation]) -> dict[str, Any]:
    table = list(operations)
    structs = {
        kind: None
        for operation in table
        for kind in (operation.answer, operation.body)
        if _is_struct(kind)
    }
    types = [*structs, HttpRefusal]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, Schema] = {}
    for operation in table:
        paths.setdefault(f"{PREFIX}{operation.path}", {})[operation.method.lower()] = (
            _operation_schema(operation, schema_by_type)
        )
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Interlock", "version": __version__, "description": API_DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {
                str(status): _refusal_schema(codes, schema_by_type[HttpRefusal])
                for status, codes in COMMON_CODES.items()
            },
            "securitySchemes": _SECURITY,
        },
    }
    plain = msgspec.json.decode(msgspec.json.encode(document))  # defaults are tuples
    return cast("dict[str, Any]", _rename_components(plain, _short_names(components)))


_SECURITY: Schema = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": f"interlock_{DEFAULT_PORT}",
        "description": "The number is the server's port.",
    },
}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _operation_schema(operation: Operation, schema_by_type: dict[Any, Schema]) -> Schema:
    schema: Schema = {"operationId": operation.name, "summary": operation.summary}
    if operation.about:
        schema["description"] = operation.about
    if parameters := [_parameter(operation, name) for name in operation.properties]:
        schema["parameters"] = parameters
    if operation.body is not None:
        schema["requestBody"] = {
            "required": operation.needs_body,
            "content": {
                "application/json": {"schema": schema_by_type.get(operation.body, _ANY_OBJECT)}
            },
        }
    schema["responses"] = _responses(operation, schema_by_type)
    return schema


def _parameter(operation: Operation, name: str) -> Schema:
    schema = dict(operation.properties[name])
    is_in_path = name in operation.in_path
    parameter: Schema = {
        "name": name,
        "in": "path" if is_in_path else "query",
        "required": is_in_path,
    }
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    if "examples" in schema:
        parameter["example"] = schema.pop("examples")[0]
    return {**parameter, "schema": schema}


def _responses(operation: Operation, schema_by_type: dict[Any, Schema]) -> Schema:
    responses: Schema = {}
    if operation.answer is not None:
        schema = schema_by_type.get(
            operation.answer, {"type": "string"} if operation.answer is str else _ANY_OBJECT
        )
        responses["200"] = {
            "description": operation.summary,
            "content": {operation.media_type: {"schema": schema}},
        }
    by_status: dict[int, list[AnyCode]] = {400: ["invalid_arguments"]}
    for code in (*(BODY_CODES if operation.body is not None else ()), *operation.codes):
        by_status.setdefault(status_of(code), []).append(code)
    assert not by_status.keys() & COMMON_CODES.keys(), (
        f"{operation.name} repeats what may always be said"
    )
    responses |= {
        str(status): _refusal_schema(tuple(codes), schema_by_type[HttpRefusal])
        for status, codes in by_status.items()
    }
    responses |= {
        str(status): {"$ref": f"#/components/responses/{status}"} for status in COMMON_CODES
    }
    return dict(sorted(responses.items()))


def _refusal_schema(codes: tuple[AnyCode, ...], schema: Schema) -> Schema:
    return {
        "description": ", ".join(f"`{code}`" for code in codes),
        "content": {"application/json": {"schema": schema}},
    }


def _short_names(components: dict[str, Any]) -> dict[str, str]:
    """A short name for each component: types of the same name get the last word of their module."""
    names: dict[str, str] = {}
    for name in components:
        *_, module, kind = ("", *name.split("."))
        names[name] = f"{module.capitalize()}{kind}"
    assert len(set(names.values())) == len(names), f"{names} are told apart"
    return names


def _rename_components(part: object, names: dict[str, str]) -> object:
    if isinstance(part, list):
        return [_rename_components(item, names) for item in cast("list[object]", part)]
    if isinstance(part, str) and part.startswith("#/components/schemas/"):
        return _REF.format(name=names[part.rpartition("/")[2]])
    if isinstance(part, dict):
        members = cast("dict[str, object]", part)
        return {
            names.get(name, name): _rename_components(value, names)
            for name, value in members.items()
        }
    return part
