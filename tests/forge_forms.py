"""How GitHub and GitLab write what a stub of them knows."""

from dataclasses import dataclass
from typing import Any, Literal

from interlock.workspace.outside.forges.registry import ForgeKind


@dataclass(frozen=True)
class StubRequest:
    """A merge request or pull request of the stub."""

    number: int
    title: str
    author: str
    head: str
    source_branch: str
    target_branch: str
    body: str
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    is_draft: bool
    is_fork: bool
    state: Literal["open", "closed", "merged"]
    updated_at: str


@dataclass(frozen=True)
class StubComment:
    id: int
    request: int
    author: str
    body: str


class ForgeForms:
    """The JSON of one kind of forge. People get their numbers when they are first spoken of."""

    def __init__(self, kind: ForgeKind, repository: str) -> None:
        self.kind, self.repository = kind, repository
        self._users: list[str] = []

    def user(self, name: str) -> dict[str, Any]:
        if name not in self._users:
            self._users.append(name)
        key = "login" if self.kind == "github" else "username"
        return {"id": 100 + self._users.index(name), key: name}

    def comment(self, comment: StubComment) -> dict[str, Any]:
        url = f"{self.address(comment.request)}#issuecomment-{comment.id}"
        author = self.user(comment.author)
        if self.kind == "github":
            return {"id": comment.id, "html_url": url, "body": comment.body, "user": author}
        return {"id": comment.id, "body": comment.body, "author": author, "system": False}

    def address(self, number: int) -> str:
        path = "pull" if self.kind == "github" else "-/merge_requests"
        return f"https://forge.example.org/{self.repository}/{path}/{number}"

    def request(self, request: StubRequest) -> dict[str, Any]:
        common = {
            "title": request.title,
            "draft": request.is_draft,
            "updated_at": request.updated_at,
            "assignees": [self.user(name) for name in request.assignees],
        }
        if self.kind == "gitlab":
            return {
                **common,
                "iid": request.number,
                "web_url": self.address(request.number),
                "state": "opened" if request.state == "open" else request.state,
                "author": self.user(request.author),
                "description": request.body or None,
                "labels": list(request.labels),
                "sha": request.head,
                "source_branch": request.source_branch,
                "target_branch": request.target_branch,
                "source_project_id": 2 if request.is_fork else 1,
                "target_project_id": 1,
            }
        source, target = {"id": 2 if request.is_fork else 1}, {"id": 1}
        return {
            **common,
            "number": request.number,
            "html_url": self.address(request.number),
            "state": "open" if request.state == "open" else "closed",
            "merged_at": request.updated_at if request.state == "merged" else None,
            "user": self.user(request.author),
            "body": request.body or None,
            "labels": [{"name": label} for label in request.labels],
            "head": {"ref": request.source_branch, "sha": request.head, "repo": source},
            "base": {"ref": request.target_branch, "sha": "0" * 40, "repo": target},
        }
