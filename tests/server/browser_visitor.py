"""Somebody with a browser."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from axe_playwright_python.sync_playwright import Axe  # pyright: ignore[reportMissingTypeStubs]
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.server.server_process import Server

QUIET = (
    "--no-sandbox",  # tests run as root in CI
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PHONE = 390
_UNFOLD = "all => all.forEach(one => { one.open = true })"
_CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}


class Chromium:
    """A browser for all modules. Its loop counts as running in this thread only while it is used:
    between modules, tests may run loops of their own.
    """

    def __init__(self, program: str) -> None:
        self._playwright = sync_playwright().start()
        self._loop = asyncio.get_running_loop()
        self._browser = self._playwright.chromium.launch(executable_path=program, args=QUIET)
        asyncio._set_running_loop(None)

    @contextmanager
    def in_use(self) -> Generator[Browser]:
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        with self.in_use():
            self._browser.close()
            self._playwright.stop()


class Visitor:
    """A browser of its own, which is signed in: what one does is not seen by another."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self._has_scripts = options.get("java_script_enabled", True)
        settings: dict[str, Any] = {
            "viewport": {"width": 1280, "height": 860},
            "reduced_motion": "reduce",  # nothing fades: what is measured is what it becomes
            **options,
        }
        self.context: BrowserContext = browser.new_context(**settings)
        name, _, cookie = server.browser_headers()["cookie"].partition("=")
        self.context.add_cookies([{"name": name, "value": cookie, "url": server.url}])
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = self.open_tab()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open_tab(self) -> Page:
        page = self.context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def go(self, path: str, *, width: int | None = None) -> Page:
        """To a page, until it is told of changes where it wants to be."""
        if width is not None:
            self.page.set_viewport_size({"width": width, "height": 844})
        self.page.goto(self.server.url + path)
        if self._has_scripts and self.page.locator("#connection").count():
            self.page.wait_for_selector('#connection[data-state="open"]')
        return self.page

    def faults(self, *paths: str, widths: Sequence[int] = (PHONE,)) -> dict[str, list[object]]:
        """Visit pages, and return what keeps people out of them or breaks their own rules."""
        found: dict[str, list[object]] = {}
        for path in paths:
            self.complaints.clear()
            self.requests.clear()
            self.go(path).locator("main details").evaluate_all(_UNFOLD)
            if faults := self.faults_here(widths=widths):
                found[path] = faults
        return found

    def faults_here(self, *, widths: Sequence[int] = (PHONE,)) -> list[object]:
        """The same of the page as it is now."""
        page, size = self.page, self.page.viewport_size
        assert size is not None
        title, headings, is_pwned = page.evaluate(
            "[document.title, document.querySelectorAll('h1').length, !!window.pwned]"
        )
        faults: list[object] = [] if title.endswith("Interlock") else [("title", title)]
        faults += [] if headings == 1 else [("headings", headings)]
        faults += ["a script of the content was run"] if is_pwned else []
        faults += [ascii(sign) for sign in "\u202e\x1b" if sign in page.content()]
        faults += axe_violations(page)
        page.emulate_media(color_scheme="dark")
        faults += _told(page.evaluate("options => axe.run(options)", _CONTRAST), "in the dark")
        page.emulate_media(color_scheme="light")
        for width in widths:
            page.set_viewport_size({"width": width, "height": 844})
            needed = needed_width(page)
            faults += [] if needed <= width else [("scrolls sideways", width, needed)]
        page.set_viewport_size(size)
        faults += [url for url in self.requests if not url.startswith(self.server.url)]
        faults += [text for text in self.complaints if "404 (Not Found)" not in text]
        return faults


def needed_width(page: Page) -> int:
    """The width of all that is on the page; beyond that of the window, it scrolls sideways."""
    return page.evaluate("document.documentElement.scrollWidth")


def axe_violations(page: Page) -> list[object]:
    """The rules that keep people out, and where each is broken."""
    axe: Any = Axe()
    return _told(axe.run(page, options={"resultTypes": ["violations"]}).response)


def _told(response: dict[str, Any], *where: str) -> list[object]:
    return [
        (one["id"], one["impact"], *where, [node["html"][:200] for node in one["nodes"][:3]])
        for one in response["violations"]
        if one["impact"] != "minor"
    ]
