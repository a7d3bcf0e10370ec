"""Somebody without a browser who is signed in: reads pages, and fills in the forms on them."""

import os
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import msgspec

from tests.server.server_process import FORM, Answer, Server
from tests.server.stage import tool_call


class Form:
    """A form as it stands on a page: where it goes, and what it sends unless somebody types."""

    def __init__(self, action: str, method: str) -> None:
        self.action, self.method = action, method
        self.fields: dict[str, str] = {}
        self.buttons: list[tuple[str, str]] = []


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get")))
        if not self.forms or "name" not in given:
            return
        form, name = self.forms[-1], given["name"]
        if tag == "button":
            form.buttons.append((name, given.get("value", "")))
        elif tag == "textarea":
            self._text = name
            form.fields[name] = ""
        elif tag == "input" and given.get("type") != "file":
            form.fields[name] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._text = ""

    def handle_data(self, data: str) -> None:
        if self._text:
            self.forms[-1].fields[self._text] += data


class SignedIn:
    def __init__(self, server: Server) -> None:
        self.server = server
        self._headers = server.browser_headers()

    def get(self, path: str) -> Answer:
        headers = {**self._headers, "accept": "text/html"}
        return self.server.ask("GET", path, headers=headers, is_signed=False)

    def form(self, page: Answer, action: str) -> Form:
        """The form on a page that goes there."""
        (found,) = [form for form in forms_on(page) if form.action == action]
        return found

    def send(self, form: Form, **typed: str) -> Answer:
        assert form.method == "post", "others are links"
        return self.post(form.action, {**form.fields, **typed})

    def post(self, path: str, fields: dict[str, str]) -> Answer:
        return self._posted(path, urlencode(fields).encode(), FORM)

    def upload(self, form: Form, name: str, content: bytes) -> Answer:
        """With a file, as browsers send one."""
        mark = os.urandom(12).hex()
        begin = f"--{mark}\r\ncontent-disposition: form-data; name="
        parts = [f'{begin}"{field}"\r\n\r\n{text}\r\n' for field, text in form.fields.items()]
        head = f'{begin}"{name}"; filename="b.json"\r\ncontent-type: application/json\r\n\r\n'
        body = "".join([*parts, head]).encode() + content + f"\r\n--{mark}--\r\n".encode()
        kind = {"content-type": f"multipart/form-data; boundary={mark}"}
        return self._posted(form.action, body, kind)

    def _posted(self, path: str, body: bytes, kind: dict[str, str]) -> Answer:
        headers = {**self._headers, **kind}
        return self.server.ask("POST", path, body=body, headers=headers, is_signed=False)


def message_of(answer: Answer) -> str:
    """The key of what the next page says."""
    cookie = answer.headers.get("set-cookie", "")
    return cookie.partition("=")[2].partition(";")[0] if "_said_" in cookie else ""


def forms_on(page: Answer) -> list[Form]:
    reader = _Reader()
    reader.feed(page.text)
    return reader.forms


def assert_harmless(page: Answer) -> None:
    """Nothing that an agent or a file wrote has become markup or controls what shows it."""
    assert page.status == 200
    for raw in ("<script>window", "<img", "<svg onload", "<b onclick", "<div onclick"):
        assert raw not in page.text, raw
    assert 'href="javascript' not in page.text
    assert not {"\u202e", "\x1b", "\0"} & set(page.text)


def call(server: Server, tool: str, **arguments: Any) -> dict[str, Any]:
    """A tool over HTTP, as an agent calls it; the whole result."""
    message = msgspec.json.encode(tool_call(tool, arguments))
    kind = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    answer = server.ask("POST", "/mcp", body=message, headers=kind)
    assert answer.status == 200, answer.text
    return answer.json["result"]
