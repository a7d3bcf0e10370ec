"""Somebody with a browser."""

from typing import Any, Self

from playwright.sync_api import Browser, BrowserContext, Page

from tests.server.server_process import Server

QUIET = (
    "--no-sandbox",  # tests run as root in CI
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


class Visitor:
    """A browser of its own: what one does is not seen by another."""

    def __init__(self, browser: Browser, server: Server, **options: Any) -> None:
        self.server = server
        self.context: BrowserContext = browser.new_context(
            viewport={"width": 1280, "height": 860}, **options
        )
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = self.open_tab()

    def __enter__(self) -> Self:
        self.page.goto(self.server.login_address())
        self.page.wait_for_url("**/now")
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open_tab(self) -> Page:
        page = self.context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def go(self, path: str) -> Page:
        """To a page, until it is told of changes where it wants to be."""
        self.page.goto(self.server.url + path)
        if self.page.locator("#connection").count():
            self.page.wait_for_selector('#connection[data-state="open"]')
        return self.page
