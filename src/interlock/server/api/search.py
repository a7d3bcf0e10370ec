"""The operation that searches sessions."""

from typing import Annotated

from msgspec import Meta

from interlock.app.context import App
from interlock.app.sessions.search import QUERY_CHARS_MAX, SearchResult, search
from interlock.server.api.operation import Parameters, rest_operation
from interlock.server.api.sessions import Limit


class SearchParameters(Parameters, frozen=True):
    q: Annotated[
        str,
        Meta(
            description="An id or the start of one; or words, which all occur in one place: a goal,"
            " a project, a branch, a workflow, or the notes that were handed in for a step.",
            max_length=QUERY_CHARS_MAX,
        ),
    ]
    archived: Annotated[bool, Meta(description="The archived ones instead of the others.")] = False
    limit: Limit = 50


@rest_operation(
    "GET",
    "/search",
    "Search sessions, the best matches first",
    about="Notes are looked through from the session that was changed last, up to a number of"
    " events; `notesSinceMs` says where that ended.",
)
def _search(app: App, at: SearchParameters) -> SearchResult:
    return search(app, at.q, limit=at.limit, is_archived=at.archived)
