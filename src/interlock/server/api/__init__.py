"""REST under /api/v2: one table of operations, and the routes and the document made from it."""

from functools import cache, partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.app.context import App
from interlock.core.answers import answer_json
from interlock.core.explanation import Explanation
from interlock.core.refusal import Refusal
from interlock.server.api import (
    coordination,
    driver,
    driver_desk,
    jobs,
    runs,
    sessions,
    system,
    triggers,
    workflows,
)
from interlock.server.api.document import PREFIX, build_document
from interlock.server.api.operation import (
    FileAnswer,
    NoParameters,
    Operation,
    Parameters,
    body_of,
    parameters_of,
    rest_operation,
)
from interlock.server.http_refusals import HttpRefusal, refusal_response
from interlock.server.live_changes import LiveChanges
from interlock.server.loosening import refuse_loosening
from interlock.server.worker import Worker

_MODULES = (
    sessions,
    runs,
    jobs,
    driver,
    driver_desk,
    triggers,
    coordination,
    workflows,
    system,
)


@rest_operation("GET", "/openapi.json", "Show this document", answer=dict)
def _show_document(_app: App, _at: NoParameters) -> dict[str, Any]:
    return openapi()


OPERATIONS: tuple[Operation, ...] = (
    *(
        declared
        for module in _MODULES
        for declared in vars(module).values()
        if isinstance(declared, Operation)
    ),
    _show_document,
)


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document of all operations."""
    return build_document(OPERATIONS)


def routes(reader: Worker, writer: Worker, background: Worker, live: LiveChanges) -> list[Route]:
    """One route for each path, so that a refused method is answered with the methods it has."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation

    def route(path: str, methods: dict[str, Operation]) -> Route:
        async def endpoint(request: Request) -> Response:
            operation = methods["GET" if request.method == "HEAD" else request.method]
            at = parameters_of(operation, request.path_params, request.query_params.multi_items())
            if isinstance(at, HttpRefusal):
                return refusal_response(at)
            if operation.media_type == "text/event-stream":
                return await live.stream(request)
            body = None
            if operation.body is not None:
                media_type = request.headers.get("content-type", "")
                body = body_of(operation, await request.body(), media_type)
                if isinstance(body, HttpRefusal):
                    return refusal_response(body)
            worker = writer if operation.is_writing else reader
            if operation.is_patient:
                worker = background
            return await worker.run(partial(_answer, operation, at, body, request))

        return Route(f"{PREFIX}{path}", endpoint, methods=list(methods))

    return [route(path, methods) for path, methods in paths.items()]


def _answer(
    operation: Operation, at: Parameters, body: Any, request: Request, app: App
) -> Response:
    """Call the operation and encode its answer, in the thread of a worker."""
    refusal = refuse_loosening(app, request, operation.name, operation.loosens, body)
    if refusal is not None:
        return _response(operation, refusal)
    if operation.is_writing or operation.is_patient:
        return _response(operation, operation.call(app, at, body))
    with app.reader.snapshot():  # so that nothing vanishes while it is read
        return _response(operation, operation.call(app, at, body))


def _response(operation: Operation, result: object) -> Response:
    if isinstance(result, Refusal):
        result = result.explain()
    if isinstance(result, Explanation):
        result = HttpRefusal(result.code, result.error, result.hint)
    if isinstance(result, HttpRefusal):
        return refusal_response(result)
    if isinstance(result, FileAnswer):
        headers = {"content-disposition": f'attachment; filename="{result.name}"'}
        return Response(result.content, media_type=operation.media_type, headers=headers)
    return Response(answer_json(result), media_type=operation.media_type)
