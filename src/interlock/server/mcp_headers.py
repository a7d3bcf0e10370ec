"""The check of an MCP message's headers against its body, and the HTTP status of its reply.

From 2026-07-28 on the headers repeat parts of the body, for proxies. A message that contradicts
itself is refused: a proxy may have let it pass for something else.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast

from starlette.datastructures import Headers

from interlock.mcp.protocol import (
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
)

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_BASE64_MARKS = ("=?base64?", "?=")


def check(message: object, headers: Headers) -> None:
    """Raise `RpcError` if the headers do not match the message."""
    version = headers.get(VERSION_HEADER)
    if not (isinstance(message, dict) and "id" in message):
        # A notification or a batch. The protocol does not say which headers those have.
        _require_known_version(version)
        return
    request = cast("dict[str, Any]", message)
    meta = _meta(request)
    if VERSION_KEY not in meta and version not in MODERN_VERSIONS:
        if request.get("method") != "initialize":  # `initialize` negotiates the version in its body
            _require_known_version(version)
        return
    for key in (VERSION_KEY, _CAPABILITIES_KEY):
        if key not in meta:
            raise RpcError(INVALID_PARAMS, f"`params._meta` does not say `{key}`")
    _require_header(headers, VERSION_HEADER, meta[VERSION_KEY])
    _require_header(headers, METHOD_HEADER, request.get("method"))
    name = cast("dict[str, Any]", request["params"]).get("name")
    if request.get("method") == "tools/call" and name is not None:
        _require_header(headers, NAME_HEADER, name)


def status_of(error: int | None, headers: Headers) -> int:
    """The status of a reply. Not every error has its own: older clients would misunderstand it."""
    if error in (PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH, UNSUPPORTED_VERSION):
        return 400
    if error is None or headers.get(VERSION_HEADER) not in MODERN_VERSIONS:
        return 200
    return 404 if error == METHOD_NOT_FOUND else 400


def _require_known_version(version: str | None) -> None:
    if version is not None and version not in HANDSHAKE_VERSIONS + MODERN_VERSIONS:
        supported = {"supported": MODERN_VERSIONS, "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"Unsupported protocol version {version}", supported)


def _require_header(headers: Headers, name: str, expected: object) -> None:
    values = headers.getlist(name)
    if [_decode_header(value) for value in values] != [expected]:
        actual = f"is {', '.join(values)}" if values else "is missing"
        raise RpcError(HEADER_MISMATCH, f"The header `{name}` {actual}; the body says `{expected}`")


def _decode_header(value: str) -> str | None:
    prefix, suffix = _BASE64_MARKS
    value = value.strip()
    if not (value.startswith(prefix) and value.endswith(suffix)):
        return value
    try:
        encoded = value[len(prefix) : -len(suffix)]
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _meta(request: Mapping[str, Any]) -> Mapping[str, Any]:
    params = request.get("params")
    meta = cast("dict[str, Any]", params).get("_meta") if isinstance(params, dict) else None
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}
