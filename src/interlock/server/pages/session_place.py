"""The place on a session's pages from which somebody opens a node or changes something.

It is the view (path, graph, timeline, turns and so on) with what its address says: the run, the
open node and its tab, the open forks and folds, the filter. Links to nodes and every change carry
it, so that each leads back to where it was asked for. Only known views and words are carried: an
address cannot lead away.
"""

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from interlock.core.ids import NodeId
from interlock.server.console import PageRedirect, PageRequest

VIEWS = {
    "path": "",
    "graph": "/graph",
    "timeline": "/timeline",
    "turns": "/turns",
    "diff": "/diff",
    "events": "/events",
    "agents": "/agents",
}
INBOX = "/inbox"
_CARRIED = ("run", "forks", "skipped", "draw", "before", "only", "q", "node", "tab", "open", "shut")


class SessionPlace(msgspec.Struct, frozen=True):
    session: str
    view: str
    query: Mapping[str, str]

    def page(self, view: str = "", **changed: str) -> str:
        """The address of the page, with another query; or of another view of the same run."""
        query = self.query if not view else {n: self.query.get(n, "") for n in ("run", "node")}
        path = f"/sessions/{self.session}{VIEWS[view or self.view]}"
        return _address(path, {**query, **changed})

    def showing(self, node: NodeId) -> str:
        """The address of the page with a node open, at that node."""
        return f"{self.page(node=node, tab='')}#node"

    def without(self, node: NodeId) -> str:
        """The address of the page with no node open, at the row of one."""
        return f"{self.page(node='', tab='')}#{node}"

    def with_tab(self, tab: str, node: NodeId) -> str:
        """The address of the page with another tab of an open node."""
        return self.page(node=node, tab=tab)

    def folds(self, name: str) -> frozenset[str]:
        """The folds that are `open` or `shut` by the address."""
        return frozenset(self.query[name].split())

    def folding(self, key: str, *, is_open: bool) -> str:
        """The address of the page with a fold opened or shut."""
        opened, shut = self.folds("open") - {key}, self.folds("shut") - {key}
        opened, shut = (opened, shut | {key}) if is_open else (opened | {key}, shut)
        return self.page(open=" ".join(sorted(opened)), shut=" ".join(sorted(shut)))

    def change(self, *action: str) -> str:
        """The address of an action on the session, which leads back here."""
        return _address(self._path(*action), {**self.query, "view": self.view})

    def _path(self, *parts: str) -> str:
        return "/".join((f"/sessions/{self.session}", *parts))


def place_in_view(request: PageRequest, session: str, view: str) -> SessionPlace:
    """The place of a page that is this view."""
    return SessionPlace(session, view, {n: request.query.get(n, "") for n in _CARRIED})


def place_of(request: PageRequest, session: str) -> SessionPlace:
    """The place from which a panel or a change was asked for: its query names the view."""
    view = request.query.get("view", "")
    return place_in_view(request, session, view if view in VIEWS else "path")


def redirect_back(request: PageRequest, session: str, message_key: str) -> PageRedirect:
    """Lead back to where a change was asked for."""
    if request.query.get("view") == INBOX.strip("/"):
        return PageRedirect(INBOX, message_key)
    return PageRedirect(place_of(request, session).page(), message_key)


def _address(path: str, query: Mapping[str, str]) -> str:
    words = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(words)}" if words else path
