"""The REST API does what its document says, whatever is sent (schemathesis against a process)."""

# The types of schemathesis are not all known.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
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
from tests.effort import EFFORT, scale
from tests.server.process import Process
from tests.server.store import Filled
from tests.server.test_api import served

__all__ = ["served"]  # fixture
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
# A stream does not end; `test_api` listens to it.
lazy_schema = schemathesis.pytest.from_fixture("api_schema").exclude(operation_id="listen")
"""The schema is expanded when the test runs, not by every worker that collects it."""


@pytest.fixture
def api_schema() -> BaseSchema:
    """The schema. Only `make long` adds a request for each way to break each field."""
    schema = schemathesis.openapi.from_dict(openapi())
    schema.config.phases.coverage.enabled = EFFORT == "long"
    return schema


@pytest.mark.timeout(900)
@lazy_schema.parametrize()
@settings(max_examples=scale(5), suppress_health_check=[HealthCheck.too_slow])
def test_every_operation_answers_as_its_document_says(
    case: schemathesis.Case[Any], served: tuple[Process, Filled]
) -> None:
    server, found = served
    if case.method == "GET" and case.meta and case.meta.generation.mode.is_positive:
        # Made-up ids are hardly ever there: looking looks at something.
        known = {name: found.ids[name] for name in case.path_parameters if name in found.ids}
        case.path_parameters = {**case.path_parameters, **known}

    case.call_and_validate(base_url=server.url, headers=server.signed(), checks=CHECKS)
