"""The REST API does what its document says, whatever is sent (schemathesis against a process)."""

# The types of schemathesis are not all known.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from interlock.server.api import openapi
from tests.effort import scale
from tests.server.process import Process
from tests.server.site_server import SiteServer
from tests.server.store import Filled, filled

EXAMPLES = scale(12)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
    allow_header_conformance,
]
# A stream does not end; what it does is tested beside the others.
SCHEMA = schemathesis.openapi.from_dict(openapi()).exclude(operation_id="listen")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Filled]]:
    home = tmp_path_factory.mktemp("api") / "interlock"
    with SiteServer(home) as server:
        yield server, filled(home, tmp_path_factory.mktemp("project"))


@SCHEMA.parametrize()
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
def test_every_operation_answers_as_its_document_says(
    case: schemathesis.Case[Any], served: tuple[Process, Filled]
) -> None:
    server, found = served
    if case.method == "GET" and case.meta and case.meta.generation.mode.is_positive:
        # Made-up ids are hardly ever there: looking looks at something.
        known = {name: found.ids[name] for name in case.path_parameters if name in found.ids}
        case.path_parameters = {**case.path_parameters, **known}

    case.call_and_validate(base_url=server.url, headers=server.signed(), checks=CHECKS)
