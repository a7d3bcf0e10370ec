"""The parts of a page: those that its reader shows already are left out of an answer.

A template writes a part as `{% call part("row-7", "tr") %}…{% endcall %}`. It is rendered with a
digest of itself. A page in a browser that fetches itself again, because something changed or
somebody opened another step, sends the digests that it shows (`console.js`); in place of such a
part the answer has its digest alone, and the browser puts its own part back. So a change costs the
bytes of what changed, however long the page is, and the server remembers nothing.
"""

import hashlib
import re
from collections.abc import Callable, Mapping

from markupsafe import Markup, escape

SHOWN_HEADER = "interlock-shown"
DIGESTS_MAX = 4_000
DIGEST_BYTES = 5

_ADJACENT_STUBS = re.compile(r'"></template>\s*<template data-same="')


class PageParts:
    """Renders the parts of one answer."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        digests = headers.get(SHOWN_HEADER, "").split(" ", DIGESTS_MAX)
        self._shown = frozenset(digests[:DIGESTS_MAX])

    def render(
        self,
        id_: str,
        tag: str = "div",
        css: str = "",
        *,
        caller: Callable[[], str],
        **attributes: str | int | bool | None,
    ) -> Markup:
        """A part as an element with this id. `data_nodes="a"` is the attribute `data-nodes`."""
        words = {"id": id_, "class": css or None, **attributes}
        opening = Markup("").join(
            Markup(" ") + name.replace("_", "-")
            if value is True
            else Markup(' {}="{}"').format(name.replace("_", "-"), value)
            for name, value in words.items()
            if value is not None and value is not False
        )
        content = escape(caller())
        digest = hashlib.blake2b(f"{opening}>{content}".encode(), digest_size=DIGEST_BYTES)
        name = digest.hexdigest()
        if name in self._shown:
            return Markup('<template data-same="{}"></template>').format(name)
        return Markup('<{0}{1} data-part="{2}">{3}</{0}>').format(
            Markup(tag), opening, name, content
        )


def join_adjacent_stubs(html: str) -> str:
    """Name all parts that are left out in a row in one place."""
    return _ADJACENT_STUBS.sub(" ", html)
