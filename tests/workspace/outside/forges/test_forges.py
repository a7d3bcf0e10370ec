"""What is asked of a forge and what comes of it, with both kinds."""

from typing import Any

import pytest

from interlock.workspace.outside.forges import rest_calls
from interlock.workspace.outside.forges.forge import Forge, ForgeRequest
from interlock.workspace.outside.forges.rest_calls import ForgeFailed
from tests.forge_stub import StubForge, StubRequest

REPOSITORY = "team/shop"
HEAD = "1f0c3e5ab2d44c1d9e7f60812345678990abcdef"
MARKER = "<!-- interlock sess_1 -->"


def address(stub: StubForge, number: int) -> str:
    path = "pull" if stub.kind == "github" else "-/merge_requests"
    return f"https://forge.example.org/team/shop/{path}/{number}"


def as_forge_request(stub: StubForge, request: StubRequest) -> ForgeRequest:
    fields = {name for name in ForgeRequest.__struct_fields__ if name != "url"}
    return ForgeRequest(
        url=address(stub, request.number), **{name: getattr(request, name) for name in fields}
    )


def open_soft_close(forge: Forge, **changes: Any) -> ForgeRequest:
    arguments: dict[str, Any] = {
        "source_branch": "interlock/soft-close",
        "target_branch": "main",
        "title": "Close softly",
        "body": "It slammed.",
        "is_draft": False,
        **changes,
    }
    return forge.open_request(REPOSITORY, **arguments)


def test_a_request_is_read_with_all_that_matters(stub: StubForge, forge: Forge) -> None:
    opened = stub.open_merge_request(
        number=7,
        title="Let the door close",
        author="cleo",
        head=HEAD,
        source_branch="door",
        body="It is *always* open.",
        labels=("agent", "door"),
        assignees=("dev", "eve"),
        is_draft=True,
    )

    assert forge.request(REPOSITORY, 7) == as_forge_request(stub, opened)
    assert forge.request(REPOSITORY, 8) is None
    assert forge.request("team/other", 7) is None


def test_the_default_branch_is_told(stub: StubForge, forge: Forge) -> None:
    stub.default_branch = "trunk"

    assert forge.default_branch(REPOSITORY) == "trunk"


def test_all_open_requests_are_listed_page_by_page_the_newest_first(
    stub: StubForge, forge: Forge
) -> None:
    for number in range(1, 6):
        stub.open_merge_request(number=number)
    stub.close(3)
    stub.push(1, HEAD)

    page = forge.changed_requests(REPOSITORY, since="", etag="")

    assert page.requests == tuple(
        as_forge_request(stub, stub.requests[number]) for number in (1, 5, 4, 2)
    )
    assert (bool(page.etag), page.is_unchanged, page.is_cut_off) == (True, False, False)


def test_a_list_is_read_as_far_back_as_asked_and_no_further(stub: StubForge, forge: Forge) -> None:
    for number in range(1, 8):
        stub.open_merge_request(number=number)

    page = forge.changed_requests(REPOSITORY, since=stub.requests[5].updated_at, etag="")

    assert [request.number for request in page.requests] == [7, 6, 5]
    assert len(stub.log) == 2  # pages of two


def test_what_has_not_changed_is_said_in_one_answer(stub: StubForge, forge: Forge) -> None:
    for number in range(1, 5):
        stub.open_merge_request(number=number)
    first = forge.changed_requests(REPOSITORY, since="", etag="")
    stub.log.clear()

    second = forge.changed_requests(REPOSITORY, since="", etag=first.etag)
    asked = len(stub.log)
    stub.change(2, labels=("agent",))
    third = forge.changed_requests(REPOSITORY, since="", etag=second.etag)

    assert (second.is_unchanged, second.requests, second.etag) == (True, (), first.etag)
    assert asked == 1
    assert (third.is_unchanged, [one.number for one in third.requests]) == (False, [2, 4, 3, 1])


def test_a_list_without_an_end_is_cut_off_and_says_so(
    stub: StubForge, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_calls, "PAGES_MAX", 2)
    for number in range(1, 6):
        stub.open_merge_request(number=number)

    page = forge.changed_requests(REPOSITORY, since="", etag="")

    assert ([one.number for one in page.requests], page.is_cut_off) == ([5, 4, 3, 2], True)


def test_the_newest_request_of_a_branch_is_found_in_whatever_state(
    stub: StubForge, forge: Forge
) -> None:
    stub.open_merge_request(number=1, source_branch="interlock/door")
    stub.close(1)
    assert forge.find_request(REPOSITORY, "interlock/door") == as_forge_request(
        stub, stub.requests[1]
    )
    stub.open_merge_request(number=2, source_branch="interlock/door")
    stub.merge(2)
    stub.open_merge_request(number=3, source_branch="interlock/other")

    found = forge.find_request(REPOSITORY, "interlock/door")

    assert found == as_forge_request(stub, stub.requests[2])
    assert forge.find_request(REPOSITORY, "interlock") is None


def test_a_branch_of_a_fork_is_not_taken_for_ours(stub: StubForge, forge: Forge) -> None:
    ours = stub.open_merge_request(source_branch="interlock/door")
    for _ in range(3):
        stub.open_merge_request(author="mallory", source_branch="interlock/door", is_fork=True)

    assert forge.find_request(REPOSITORY, "interlock/door") == as_forge_request(stub, ours)


@pytest.mark.parametrize("is_draft", [False, True])
def test_a_request_is_opened(stub: StubForge, forge: Forge, is_draft: bool) -> None:  # noqa: FBT001
    stub.branch_heads["interlock/soft-close"] = HEAD

    opened = open_soft_close(forge, is_draft=is_draft)

    draft_of_gitlab = is_draft and stub.kind == "gitlab"
    assert opened == as_forge_request(stub, stub.requests[1])
    assert (opened.author, opened.head, opened.is_draft) == ("interlock-bot", HEAD, is_draft)
    assert (opened.source_branch, opened.target_branch) == ("interlock/soft-close", "main")
    assert opened.title == ("Draft: " if draft_of_gitlab else "") + "Close softly"
    assert opened.body == "It slammed."


def test_a_request_that_is_there_already_is_returned_instead_of_a_second_one(
    stub: StubForge, forge: Forge
) -> None:
    opened = open_soft_close(forge)
    into_another = open_soft_close(forge, target_branch="release")

    assert open_soft_close(forge, title="Once more") == opened
    assert open_soft_close(forge, target_branch="release") == into_another
    assert len(stub.requests) == 2

    stub.close(1)
    assert open_soft_close(forge).number == 3


def test_a_refusal_is_told_if_nothing_of_ours_is_the_reason(stub: StubForge, forge: Forge) -> None:
    """The forge says that there is one already, and it is a stranger's; ours is closed."""
    stub.open_merge_request(number=1, source_branch="interlock/soft-close")
    stub.close(1)
    stub.open_merge_request(source_branch="interlock/soft-close", is_fork=True)

    with pytest.raises(ForgeFailed, match="already exists") as failure:
        open_soft_close(forge)

    assert failure.value.is_final


def test_an_opened_request_is_found_though_its_answer_was_lost(
    stub: StubForge, forge: Forge
) -> None:
    stub.fail_once("POST", r"/(pulls|merge_requests)$", "after")

    with pytest.raises(ForgeFailed) as failure:
        open_soft_close(forge)
    found = forge.find_request(REPOSITORY, "interlock/soft-close")

    assert not failure.value.is_final
    assert found == as_forge_request(stub, stub.requests[1])


def comment_address(stub: StubForge, number: int, position: int) -> str:
    anchor = "issuecomment-" if stub.kind == "github" else "note_"
    return f"{address(stub, number)}#{anchor}{stub.comments[position].id}"


def test_a_comment_is_written_and_found_by_its_marker(stub: StubForge, forge: Forge) -> None:
    stub.open_merge_request(number=7)
    for text in ("One", "Two", "Three"):
        stub.add_comment(7, text)

    written = forge.comment(REPOSITORY, 7, f"Done.\n\n{MARKER}")
    for text in ("Four", "Five", "Six"):
        stub.add_comment(7, text)

    assert stub.comments_on(7)[3] == f"Done.\n\n{MARKER}"
    assert written == comment_address(stub, 7, 3)
    assert forge.find_comment(REPOSITORY, 7, MARKER) == written
    assert forge.find_comment(REPOSITORY, 7, "<!-- interlock sess_2 -->") == ""


def test_a_marker_that_somebody_else_wrote_is_not_ours(stub: StubForge, forge: Forge) -> None:
    stub.open_merge_request(number=7)
    stub.add_comment(7, MARKER, author="mallory")

    assert forge.find_comment(REPOSITORY, 7, MARKER) == ""


def test_comments_that_are_too_many_to_look_through_are_a_failure_and_not_none(
    stub: StubForge, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is told that there is none writes a second one."""
    monkeypatch.setattr(rest_calls, "PAGES_MAX", 2)
    stub.open_merge_request(number=7)
    for text in ("One", "Two", "Three", "Four", "Five"):
        stub.add_comment(7, text)

    with pytest.raises(ForgeFailed, match="too long to look through") as failure:
        forge.find_comment(REPOSITORY, 7, MARKER)

    assert failure.value.is_final


def test_a_comment_is_found_though_its_answer_was_lost(stub: StubForge, forge: Forge) -> None:
    stub.open_merge_request(number=7)
    stub.fail_once("POST", r"/(comments|notes)$", "after")

    with pytest.raises(ForgeFailed) as failure:
        forge.comment(REPOSITORY, 7, MARKER)

    assert not failure.value.is_final
    assert forge.find_comment(REPOSITORY, 7, MARKER) == comment_address(stub, 7, 0)


@pytest.mark.parametrize("kind", ["gitlab"], indirect=True)
@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("/merge", r"\/merge"),
        ("Done.\n/merge\n/close", "Done.\n\\/merge\n\\/close"),
        ("Done.\n \t/approve", "Done.\n \t\\/approve"),
        ("Done.\r\n\r/merge", "Done.\r\n\r\\/merge"),
        ("It is in src/merge, and 1 / 2", "It is in src/merge, and 1 / 2"),
        ("// a comment", "// a comment"),
    ],
)
def test_no_line_of_a_text_is_a_command_to_gitlab(
    stub: StubForge, forge: Forge, text: str, escaped: str
) -> None:
    stub.open_merge_request(number=7)

    forge.comment(REPOSITORY, 7, text)
    opened = open_soft_close(forge, body=text)

    assert stub.comments_on(7) == [escaped]
    assert opened.body == escaped
