"""Choose the tools to list for a client. Every served tool can be called, listed or not.

Each request to a model carries the listing, so it has only what the project uses. No
client lets a model call a tool that is not listed, so the listing grows as soon as the project uses
more (`notifications/tools/list_changed`), and it never shrinks: a conversation keeps its tools.
"""

from collections.abc import Callable, Set
from typing import Any, Protocol

from interlock.app.hosts.project_use import ProjectUse
from interlock.mcp.tool import Tool

STARTING = (
    "list_workflows",
    "inspect_workflow",
    "start_workflow",
    "continue_workflow",
    "resume_session",
)
"""The tools that start work, the only ones listed outside an opted-in project."""
WORKING = (
    *("checkpoint_workflow", "session", "request_approval"),
    *("delegate", "complete_delegation", "record_decision", "write_note"),
)
NOTES = ("search_notes", "read_note", "edit_note", "build_context")
"""The tools for notes that exist."""
COORDINATION = (
    *("preflight", "reserve_paths", "release_paths", "work_items", "send_message", "inbox"),
)
EVERYTHING = ProjectUse(is_opted_in=True, is_coordinated=True, has_notes=True)


def listed_names(use: ProjectUse) -> frozenset[str]:
    """Return the names of the tools that are shown in a project with this use."""
    names = STARTING
    if use.is_opted_in:
        names += WORKING
        names += NOTES if use.has_notes else ()
        names += COORDINATION if use.is_coordinated else ()
    return frozenset(names)


class NotificationLink(Protocol):
    def notify(self, method: str, params: dict[str, Any]) -> None: ...


class Listing:
    """The tools listed for one client; without `look`, all served tools."""

    def __init__(
        self,
        tools: tuple[Tool[Any], ...],
        look: Callable[[], ProjectUse] | None,
        link: NotificationLink | None,
        listed: Set[str],
    ) -> None:
        self._tools, self._look, self._link = tools, look, link
        self._names = frozenset(listed)
        """The names of the tools to show."""
        self._known = self._names
        """The tools that the client has listed or was notified of; none before it lists them."""
        self._meta: dict[str, Any] = {}
        """Return the metadata of a notification; for a client of 2026, the id of its request."""
        self.is_final = False
        """Whether the client reads the listing only once, so that it must be complete."""

    @property
    def tools(self) -> tuple[Tool[Any], ...]:
        if self._look is None:
            return self._tools
        if not listed_names(EVERYTHING) <= self._names:
            use = self._look()
            use = EVERYTHING if self.is_final and use.is_opted_in else use
            self._names |= listed_names(use)
        return tuple(tool for tool in self._tools if tool.name in self._names)

    def show(self) -> tuple[Tool[Any], ...]:
        """The tools, for a client that lists them."""
        tools = self.tools
        self._known = self._names
        return tools

    def subscribe(self, request: int | str, params: dict[str, Any]) -> None:
        """Acknowledge a request for notifications; there is one kind."""
        wanted = params.get("notifications")
        is_wanted = isinstance(wanted, dict) and "toolsListChanged" in wanted
        self._meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": request}}
        kinds = {"toolsListChanged": True} if is_wanted else {}
        if self._link:
            acknowledged = {**self._meta, "notifications": kinds}
            self._link.notify("notifications/subscriptions/acknowledged", acknowledged)

    def announce_new_tools(self) -> None:
        """Ask the client to list the tools again if the project now uses more of them."""
        is_asked = bool(self._known) and not self.is_final
        if self._link and is_asked and self.tools and self._names - self._known:
            self._known = self._names
            self._link.notify("notifications/tools/list_changed", self._meta)
