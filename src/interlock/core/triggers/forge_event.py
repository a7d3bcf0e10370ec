"""Something that has happened on a forge, in one form for all of them."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

EventKind: TypeAlias = Literal["request", "issue", "push", "other"]
Number: TypeAlias = Annotated[int, Meta(ge=1)]

_ACTIONS: Final = {
    "open": "opened",
    "synchronize": "updated",
    "edited": "updated",
    "update": "updated",
    "close": "closed",
    "merge": "merged",
    "reopen": "reopened",
}
"""Where forges have different words for one thing. Other words are left as they are."""
_BRANCHES: Final = "refs/heads/"


class ForgeEvent(Struct, frozen=True, kw_only=True):
    """Something that has happened on a forge. A *request* is a merge request or a pull request."""

    kind: EventKind
    action: str = ""
    """`opened`, `updated`, `closed`, `merged`, `reopened`, `labeled` and others; empty if none."""
    repository: str
    """Its path on the forge; empty if the event is about none. Of a request, where it leads to."""
    number: int = 0
    is_open: bool = False
    author: str = ""
    """Who wrote the request or issue; empty where the payload does not say: GitLab has only a
    number for it, and names those who caused the event or are to do something about it."""
    sender: str
    """Who caused the event."""
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    head: str = ""
    """The commit of a request or a push; empty if there is none, as after a branch was deleted."""
    title: str = ""
    url: str = ""
    is_draft: bool = False
    changes_code: bool = False
    """False for a mere change of labels or words."""
    is_fork: bool = False
    """Whether the code of a request is in another repository, or in none any more."""
    branch: str = ""
    """Of a push; of a request, where its code comes from."""
    body: str = ""
    """The description of a request or an issue."""
    target: str = ""
    """The branch that a request is for."""


def common_action(word: str) -> str:
    """Return the word that we have for an action of a forge."""
    return _ACTIONS.get(word, word)


def push_event(*, repository: str, sender: str, ref: str, commit: str, url: str) -> ForgeEvent:
    """Return the push to a branch; one of a tag is of no kind that we know."""
    if not ref.startswith(_BRANCHES):
        return ForgeEvent(kind="other", repository=repository, sender=sender)
    head = commit if commit.strip("0") else ""
    return ForgeEvent(
        kind="push",
        repository=repository,
        author=sender,
        sender=sender,
        head=head,
        url=url,
        changes_code=bool(head),
        branch=ref.removeprefix(_BRANCHES),
    )
