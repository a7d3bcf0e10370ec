"""The frame that all pages of the console share: requests, rendering, and changes.

A page is a function from a `PageRequest` to a `Page`. It runs in a thread with an `App` of its own,
so it reads the store like any other use case. A new capability is a new module in `pages`.

A page is rendered inside a snapshot of the store, and with the position of the newest event at that
time: its live stream reports what has changed since, and it then fetches itself, part by part
(`page_parts`). An action is a POST with the CSRF token of one of our pages; it ends in a redirect,
whose message is named by a key in a cookie for the next page, or in a page or an error.
Templates escape everything, and text on its way into a page is made visible (`formatting`).
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from interlock.app.admin.access import Secret
from interlock.app.context import App
from interlock.app.runs.waiting import count_waiting
from interlock.app.unattended.journal_views import work_marker
from interlock.core.explanation import Explanation
from interlock.server import formatting
from interlock.server.assets import ASSETS_DIGEST
from interlock.server.guard import HttpCaller
from interlock.server.http_refusals import status_of
from interlock.server.live_changes import NO_SESSION
from interlock.server.loosening import Loosens, refuse_loosening
from interlock.server.page_parts import PageParts, join_adjacent_stubs
from interlock.server.worker import Worker

MESSAGE_SECONDS = 15
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]")


class PageRequest(msgspec.Struct, frozen=True):
    """A request for a page, or for a change."""

    app: App
    path: str
    params: Mapping[str, str]
    """The parameters in the path: ids, never file names."""
    query: Mapping[str, str]
    secret: Secret
    """Signs the content shown, so that an answer can be checked to be about exactly that."""
    form: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])

    def word(self, name: str, default: str = "") -> str:
        """The value of a field of the form, or else of the query."""
        value = self.form.get(name, self.query.get(name, default))
        return value if isinstance(value, str) else default

    def without(self, *names: str, **changed: str) -> str:
        """The address of this page with another query."""
        unchanged = {k: v for k, v in self.query.items() if k not in names and k not in changed}
        query = {k: v for k, v in (unchanged | changed).items() if v}
        return f"{self.path}?{urlencode(query)}" if query else self.path


class Page(msgspec.Struct, frozen=True):
    template: str
    title: str
    facts: dict[str, Any]
    live: str | None = None
    """The session that the page is about; empty for all of them; None if the page is not live."""
    stream: str = ""
    """The address of the stream of changes, if these are not in the store."""
    follows_work: bool = False
    """Whether it shows what only the journal of a driver tells, and so is told of that, too."""
    status: int = 200


class PageRedirect(msgspec.Struct, frozen=True):
    """The answer after a change: the page that shows it."""

    path: str
    message_key: str = ""
    """A key of `formatting.CHANGE_MESSAGES`."""
    fragment: str = ""
    """The id of the part of the page to show."""


class Download(msgspec.Struct, frozen=True):
    name: str
    content: bytes
    media_type: str = "application/json"


PageHandler: TypeAlias = Callable[[PageRequest], Page | Explanation | Download]
ActionHandler: TypeAlias = Callable[[PageRequest], PageRedirect | Page | Explanation]


class NavItem(msgspec.Struct, frozen=True):
    name: str
    path: str
    key: str
    """The key that, after `g`, goes there."""
    icon: str
    group: Literal["main", "foot"] = "main"
    counts_waiting: bool = False
    """Whether it says how much waits for the user."""


class Console:
    """Turns pages into HTML. Holds no state."""

    def __init__(
        self,
        reader: Worker,
        writer: Worker,
        secret: Secret,
        nav: tuple[NavItem, ...],
        *,
        background_worker: Worker,
    ) -> None:
        self._reader, self._writer, self._secret, self._nav = reader, writer, secret, nav
        self._background_worker = background_worker
        self._templates = Environment(
            loader=PackageLoader("interlock.server"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize_value,
        )
        self._templates.filters |= formatting.FILTERS | {
            "markdown": _render_markdown,
            "in_line": _render_inline_markdown,
        }

    def page(self, path: str, handler: PageHandler) -> Route:
        return self._page_route(path, handler, self._reader)

    def background_page(self, path: str, handler: PageHandler) -> Route:
        """A page that may take long: nobody else waits for it."""
        return self._page_route(path, handler, self._background_worker)

    def _page_route(self, path: str, handler: PageHandler, worker: Worker) -> Route:
        async def endpoint(request: Request) -> Response:
            csrf = self._csrf(request)

            def respond(app: App) -> Response:
                with app.reader.snapshot():  # so that nothing is deleted while the page is made
                    return self._respond(handler, self._page_request(app, request), request, csrf)

            return await worker.run(respond)

        return Route(path, endpoint, methods=["GET"])

    def action(self, path: str, handler: ActionHandler, *, loosens: Loosens = False) -> Route:
        """A POST that changes something. It must come from one of our pages.

        `loosens`: whether it lets agents do more, by the `PageRequest`; then it wants a person.
        """
        return self._action_route(path, handler, self._writer, loosens)

    def background_action(
        self, path: str, handler: ActionHandler, *, loosens: Loosens = False
    ) -> Route:
        """An action that may take long: nobody else waits for it."""
        return self._action_route(path, handler, self._background_worker, loosens)

    def _action_route(
        self, path: str, handler: ActionHandler, worker: Worker, loosens: Loosens
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            async with request.form() as form:  # closes the files in it
                refusal = self.refuse_foreign_form(request, form)
                if refusal is not None:
                    return refusal
                fields = await _form_fields(form)
            csrf = self._csrf(request)

            def handle(asked: PageRequest) -> PageRedirect | Page | Explanation:
                refusal = refuse_loosening(asked.app, request, f"POST {path}", loosens, asked)
                return refusal or handler(asked)

            def respond(app: App) -> Response:
                return self._respond(
                    handle, self._page_request(app, request, fields), request, csrf
                )

            return await worker.run(respond)

        return Route(path, endpoint, methods=["POST"])

    def refuse_foreign_form(self, request: Request, form: FormData) -> Response | None:
        """The answer to a form that a browser did not get from one of our pages; else None."""
        caller: HttpCaller = request.scope["caller"]
        csrf = form.get("csrf")
        is_own = isinstance(csrf, str) and self._secret.is_csrf(csrf, caller.cookie)
        if caller.kind != "browser" or is_own:
            return None
        hint = "Reload the page and try again."
        return self.error_page(request, "The page's token is missing", hint, 403)

    def render_plain(self, template: str, **facts: Any) -> str:
        """The HTML of a page without the frame, for somebody who is not signed in."""
        return self._templates.get_template(template).render(assets=ASSETS_DIGEST, **facts)

    def error_page(
        self, request: Request, error: str, hint: str, status: int, app: App | None = None
    ) -> Response:
        """A page that shows an error. Without an `App`, the things that wait are not counted."""
        html = self._templates.get_template("error.html").render(
            **self._frame_facts(request, self._csrf(request), app),
            title=error,
            stream="",
            is_live=False,
            error=error,
            hint=hint,
        )
        return HTMLResponse(html, status_code=status)

    def _respond(
        self,
        handler: PageHandler | ActionHandler,
        page_request: PageRequest,
        request: Request,
        csrf: str,
    ) -> Response:
        # Before anything is read: the page's stream then reports what changes meanwhile.
        position, work = page_request.app.reader.position(), work_marker(page_request.app)
        match result := handler(page_request):
            case Explanation():
                return self.error_page(
                    request, result.error, result.hint, status_of(result.code), page_request.app
                )
            case PageRedirect():
                fragment = f"#{result.fragment}" if result.fragment else ""
                response = RedirectResponse(result.path + fragment, status_code=303)
                if result.message_key:
                    # Not in the address, where anybody could put it into a link.
                    response.set_cookie(
                        message_cookie(request),
                        result.message_key,
                        max_age=MESSAGE_SECONDS,
                        httponly=True,
                        samesite="strict",
                    )
                return response
            case Download():
                name = _NOT_IN_NAMES.sub("_", result.name)
                headers = {"content-disposition": f'attachment; filename="{name}"'}
                return Response(result.content, media_type=result.media_type, headers=headers)
            case Page():
                stream = result.stream or _stream_url(result, position, work)
                html = self._render_page(result, page_request.app, request, csrf, stream)
                response = HTMLResponse(html, result.status)
                if message_cookie(request) in request.cookies and not _is_refresh(request):
                    response.delete_cookie(message_cookie(request))
                return response

    def _render_page(self, page: Page, app: App, request: Request, csrf: str, stream: str) -> str:
        html = self._templates.get_template(page.template).render(
            **self._frame_facts(request, csrf, app),
            title=page.title,
            stream=stream,
            is_live=bool(page.stream) or page.live is not None,
            now_ms=app.clock.now_ms(),
            **page.facts,
        )
        return join_adjacent_stubs(html)

    def _frame_facts(self, request: Request, csrf: str, app: App | None) -> dict[str, Any]:
        return {
            "nav": self._nav,
            "waiting_count": count_waiting(app) if app else 0,
            "path": request.url.path,
            "here": str(request.url.path) + (f"?{request.url.query}" if request.url.query else ""),
            "is_partial": "hx-request" in request.headers,
            "part": PageParts(request.headers).render,
            "message": formatting.CHANGE_MESSAGES.get(
                request.cookies.get(message_cookie(request), ""), ""
            ),
            "csrf": csrf,
            "assets": ASSETS_DIGEST,
        }

    def _csrf(self, request: Request) -> str:
        caller: HttpCaller = request.scope["caller"]
        return self._secret.csrf(caller.cookie) if caller.cookie else ""

    def _page_request(
        self, app: App, request: Request, form: Mapping[str, Any] | None = None
    ) -> PageRequest:
        return PageRequest(
            app,
            request.url.path,
            dict(request.path_params),
            dict(request.query_params),
            self._secret,
            form or {},
        )


def message_cookie(request: Request) -> str:
    """The name of the cookie with the message for the next page; ports share their cookies."""
    return f"interlock_said_{request.url.port}"


def _is_refresh(request: Request) -> bool:
    """Whether a page fetches itself because something changed: nobody waits for a message."""
    return request.headers.get("hx-source") == "main#main"


def _stream_url(page: Page, position: int, work: str) -> str:
    session = NO_SESSION if page.live is None else page.live
    query = {"since": str(position), "session": session, "work": work if page.follows_work else ""}
    return f"/live?{urlencode({name: word for name, word in query.items() if word})}"


def _finalize_value(value: object) -> object:
    """Make invisible and direction-changing characters visible, in every text on every page."""
    return formatting.show_on_page(value) if type(value) is str else value


async def _form_fields(form: FormData) -> dict[str, str | bytes]:
    """The fields of a form: typed ones as text, files as bytes."""
    fields: dict[str, str | bytes] = {}
    for name, value in form.items():
        fields[name] = value if isinstance(value, str) else await value.read()
    return fields


def _render_markdown(text: str) -> Markup:
    from interlock.server.markdown import markdown  # noqa: PLC0415 (not before the server is ready)

    return markdown(text)


def _render_inline_markdown(text: str) -> Markup:
    from interlock.server.markdown import inline_markdown  # noqa: PLC0415 (as above)

    return inline_markdown(text)
