"""The calls of one operation at the REST API of a forge: on one connection, with one deadline."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from interlock.workspace.outside.deadline_http import (
    DeadlineHttp,
    HttpAnswer,
    ServerDown,
    status_text,
)
from interlock.workspace.outside.private_address import is_private_address
from interlock.workspace.outside.quotation import quote

PAGE_SIZE = 50
PAGES_MAX = 40
ANSWER_BYTES_MAX = 16 * 2**20  # a page of requests with the longest texts that forges allow
_ETAG_CHARACTERS_MAX = 200
_OK, _REDIRECT, _UNCHANGED, _SERVER_ERROR = 200, 300, 304, 500
_FORBIDDEN, _NOT_FOUND, _TOO_SLOW, _TOO_MANY = 403, 404, 408, 429

T = TypeVar("T")


class ForgeFailed(OSError):
    """A forge rejected or failed a request, which is retried unless `is_final`.

    A change may have been made nevertheless. The message is a sentence
    and never holds the token.
    """

    def __init__(
        self, message: str, *, is_final: bool = False, wait_seconds: int = 0, status: int = 0
    ) -> None:
        super().__init__(message)
        self.is_final = is_final
        self.wait_seconds = wait_seconds
        """How long to wait before the next request to the forge."""
        self.status = status
        """The HTTP status of the answer; 0 without one."""


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    items: tuple[T, ...]
    etag: str
    is_unchanged: bool
    has_more: bool


class RestApi:
    """The API of a forge, and the token that it is shown, which no text names."""

    def __init__(
        self, name: str, base_url: str, headers: Mapping[str, str], *, token: str, seconds: float
    ) -> None:
        """Raises `ForgeFailed` if the token cannot be sent, or could be read on its way."""
        if not is_private_address(base_url) or not _is_plain(base_url):
            fault = "must be an https one, or an http one of this machine, and nothing else in it"
            raise ForgeFailed(f"The address of {name} {fault}", is_final=True)
        if not (token.isascii() and token.isprintable()):
            raise ForgeFailed(f"The token for {name} is not plain text", is_final=True)
        self._name, self._base_url, self._token = name, base_url.rstrip("/"), token
        self._headers = {"User-Agent": "interlock", **headers}
        self._seconds = seconds

    @contextmanager
    def calls(self) -> Generator["RestCalls"]:
        """The calls of one operation, which has so many seconds from now on."""
        connection = DeadlineHttp(self._base_url, "", self._seconds)
        try:
            yield RestCalls(connection, self._name, self._headers, self._token)
        finally:
            connection.close()


class RestCalls:
    """Every method raises `ForgeFailed` if the forge does not do it."""

    def __init__(
        self, connection: DeadlineHttp, name: str, headers: Mapping[str, str], token: str
    ) -> None:
        self._connection, self._name, self._token = connection, name, token
        self._headers = headers

    def get(self, path: str, shape: type[T]) -> T:
        return self._read(self._ask("GET", path), shape)

    def find(self, path: str, shape: type[T]) -> T | None:
        """Return what is there; None if the forge knows nothing of it."""
        answer = self._ask("GET", path)
        return None if answer.status == _NOT_FOUND else self._read(answer, shape)

    def post(self, path: str, shape: type[T], content: Mapping[str, Any]) -> T:
        return self._read(self._ask("POST", path, body=msgspec.json.encode(content)), shape)

    def pages(
        self, path: str, shape: type[T], query: Mapping[str, str], etag: str = ""
    ) -> Iterator[ListPage[T]]:
        """The pages of a list, as many as are ever read. The `etag` is that of the first one.

        Pages are counted here: an address for the next one that the forge names could lead the
        token elsewhere.
        """
        for number in range(1, PAGES_MAX + 1):
            where = urlencode({**query, "per_page": str(PAGE_SIZE), "page": str(number)})
            headers = {"If-None-Match": etag} if etag and number == 1 else {}
            answer = self._ask("GET", f"{path}?{where}", headers)
            is_unchanged = bool(headers) and answer.status == _UNCHANGED
            items = () if is_unchanged else self._read(answer, tuple[shape, ...])
            has_more = 'rel="next"' in answer.headers.get("link", "")
            yield ListPage(items, _etag_of(answer, etag), is_unchanged, has_more)
            if not has_more:
                return

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpAnswer:
        content_type = {"Content-Type": "application/json"} if body is not None else {}
        headers = {**self._headers, **content_type, **(headers or {})}
        try:
            return self._connection.ask(method, path, headers, body, bytes_max=ANSWER_BYTES_MAX)
        except ServerDown as failure:
            raise ForgeFailed(f"{self._name} {quote(self._hide_token(str(failure)))}") from failure

    def _read(self, answer: HttpAnswer, shape: type[T]) -> T:
        if not _OK <= answer.status < _REDIRECT:
            raise self._failure(answer)
        try:
            return msgspec.json.decode(answer.body, type=shape)
        except (msgspec.DecodeError, RecursionError) as error:
            fault = "answered with something of a form that is not known here"
            raise ForgeFailed(f"{self._name} {fault}", status=answer.status) from error

    def _failure(self, answer: HttpAnswer) -> ForgeFailed:
        reason = quote(self._hide_token(_reason_in(answer.body)))
        status, is_limited = answer.status, _is_rate_limit(answer, reason)
        is_later = is_limited or "retry-after" in answer.headers
        return ForgeFailed(
            f"{self._name} {status_text(status)}" + (f" ({reason})" if reason else ""),
            is_final=not is_limited and status < _SERVER_ERROR and status != _TOO_SLOW,
            wait_seconds=wait_seconds(answer.headers) if is_later else 0,
            status=status,
        )

    def _hide_token(self, text: str) -> str:
        return text.replace(self._token, "…") if self._token else text


def _is_plain(base_url: str) -> bool:
    parts = urlsplit(base_url)
    return not (parts.query or parts.fragment or parts.username or parts.password)


def _etag_of(answer: HttpAnswer, asked: str) -> str:
    etag = answer.headers.get("etag", asked if answer.status == _UNCHANGED else "")
    is_usable = etag.isascii() and etag.isprintable() and len(etag) <= _ETAG_CHARACTERS_MAX
    return etag if is_usable else ""


def _is_rate_limit(answer: HttpAnswer, reason: str) -> bool:
    """GitHub says 403 as well, with one of these signs."""
    signs = "retry-after" in answer.headers or "rate limit" in reason.lower()
    is_spent = answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status == _TOO_MANY or (answer.status == _FORBIDDEN and (signs or is_spent))


class _ErrorAnswer(msgspec.Struct, frozen=True):
    """How both forges say what is wrong; in words, or in lists and objects of them."""

    message: Any = None
    error: Any = None
    errors: Any = None


def _reason_in(body: bytes) -> str:
    try:
        answer = msgspec.json.decode(body, type=_ErrorAnswer)
    except (msgspec.DecodeError, RecursionError):
        return ""
    parts = filter(None, (answer.message, answer.error, answer.errors))
    return ": ".join(
        part if isinstance(part, str) else msgspec.json.encode(part).decode() for part in parts
    )


WAIT_SECONDS = 60  # where it does not say: GitHub's advice
WAIT_SECONDS_MAX = 3600
_DIGITS_MAX = 12
_RESETS = ("x-ratelimit-reset", "ratelimit-reset")


def wait_seconds(headers: Mapping[str, str]) -> int:
    """Return the wait that the headers of an answer ask for.

    A time in them is compared with the time of the answer: the forge's clock, not ours.
    """
    asked, now = headers.get("retry-after", ""), _epoch(headers.get("date", ""))
    until = next((headers[name] for name in _RESETS if name in headers), "")
    if _is_count(asked):
        seconds = int(asked)
    else:
        seconds = (_epoch(asked) or _epoch(until)) - now if now else 0
    return min(seconds, WAIT_SECONDS_MAX) if seconds > 0 else WAIT_SECONDS


def _epoch(text: str) -> int:
    """Return the time of an HTTP date or of a count of seconds since 1970; 0 for anything else."""
    try:
        return int(text) if _is_count(text) else int(parsedate_to_datetime(text).timestamp())
    except (ValueError, OverflowError):
        return 0


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
