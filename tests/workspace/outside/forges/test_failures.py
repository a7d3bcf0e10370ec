"""What a forge that fails comes to: tried again or not, after how long, and without the token."""

import ssl
import subprocess
from pathlib import Path

import pytest

from interlock.workspace.outside.forges.forge import Forge
from interlock.workspace.outside.forges.registry import ForgeKind, forge_of
from interlock.workspace.outside.forges.rest_calls import ForgeFailed, wait_seconds
from tests.forge_stub import RESET_AFTER, Fault, StubForge

REPOSITORY = "team/shop"
SLACK_SECONDS = 5.0
AT = "Mon, 02 Mar 2026 10:00:00 GMT"
AT_EPOCH = 1_772_445_600


@pytest.mark.parametrize(
    ("fault", "reason", "wait"),
    [
        ("500", "answered with status 500 (500 Internal Server Error)", 0),
        ("429", "answered with status 429 (Too many)", 7),
        ("garbled", "answered with something of a form that is not known here", 0),
        ("before", "cannot be used: Remote end closed connection without response", 0),
    ],
)
def test_a_failure_of_the_moment_is_tried_again(
    stub: StubForge, forge: Forge, fault: Fault, reason: str, wait: int
) -> None:
    stub.fail_once("GET", REPOSITORY.replace("/", "(/|%2F)"), fault)

    with pytest.raises(ForgeFailed) as failure:
        forge.default_branch(REPOSITORY)

    name = {"github": "GitHub", "gitlab": "GitLab"}[stub.kind]
    assert str(failure.value) == f"{name} {reason}"
    assert (failure.value.is_final, failure.value.wait_seconds) == (False, wait)
    assert forge.default_branch(REPOSITORY) == "main"


def test_a_forge_that_was_asked_too_often_is_asked_again_when_it_says(
    stub: StubForge, forge: Forge
) -> None:
    stub.fail_once("GET", "", "403")

    with pytest.raises(ForgeFailed, match="API rate limit exceeded") as failure:
        forge.default_branch(REPOSITORY)

    assert not failure.value.is_final
    assert RESET_AFTER - SLACK_SECONDS < failure.value.wait_seconds <= RESET_AFTER


def test_a_forge_that_hangs_is_given_up_in_time(stub: StubForge) -> None:
    stub.fail_once("GET", "", "hang")
    forge = forge_of(stub.kind, stub.url, stub.token, seconds=0.3)

    with pytest.raises(ForgeFailed, match=r"did not answer within 0\.3 s") as failure:
        forge.default_branch(REPOSITORY)

    assert not failure.value.is_final


def test_a_forge_that_is_not_there_is_tried_again(kind: ForgeKind) -> None:
    with StubForge(kind) as stub:
        forge = forge_of(kind, stub.url, stub.token)

    with pytest.raises(ForgeFailed, match="refuses connections") as failure:
        forge.default_branch(REPOSITORY)

    assert not failure.value.is_final


def test_a_wrong_token_is_final_and_is_named_nowhere(stub: StubForge) -> None:
    forge = forge_of(stub.kind, stub.url, "s3cret-t0ken")

    with pytest.raises(ForgeFailed, match="status 401: it refuses the token") as failure:
        forge.request(REPOSITORY, 1)

    assert (failure.value.is_final, failure.value.status) == (True, 401)
    assert "s3cret" not in f"{failure.value!r} {forge!r} {failure.value.__cause__!r}"


def test_a_token_that_the_forge_repeats_is_not_quoted(stub: StubForge) -> None:
    forge = forge_of(stub.kind, stub.url, "401")

    with pytest.raises(ForgeFailed) as failure:
        forge.default_branch(REPOSITORY)

    assert "(… Unauthorized)" in str(failure.value)


def test_a_token_does_not_follow_a_repository_that_has_moved(stub: StubForge, forge: Forge) -> None:
    stub.fail_once("GET", "", "301")

    with pytest.raises(ForgeFailed, match="redirects are not followed") as failure:
        forge.default_branch(REPOSITORY)

    assert failure.value.is_final
    assert len(stub.log) == 1


def test_what_the_token_does_not_reach_is_final(forge: Forge) -> None:
    with pytest.raises(ForgeFailed, match="status 404") as failure:
        forge.default_branch("team/other")

    assert failure.value.is_final


@pytest.mark.parametrize("token", ["s3cret\n", "s3cret\r\nX: y", "s3crét"])
def test_a_token_that_cannot_be_sent_is_not_quoted(kind: ForgeKind, token: str) -> None:
    with pytest.raises(ForgeFailed, match="is not plain text") as failure:
        forge_of(kind, "http://127.0.0.1:9", token)

    assert failure.value.is_final
    assert "s3cr" not in str(failure.value)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://forge.example.org",
        "ftp://127.0.0.1",
        "https://ana:s3cret@forge.example.org",
        "https://forge.example.org?s3cret",
        "https://forge.example.org#s3cret",
        "https://forge.example.org\r\ns3cret",
        "forge.example.org",
    ],
)
def test_a_token_is_sent_where_nobody_else_reads_it(kind: ForgeKind, base_url: str) -> None:
    with pytest.raises(ForgeFailed, match="must be an https one") as failure:
        forge_of(kind, base_url, "t0ken")

    assert failure.value.is_final
    assert "s3cret" not in str(failure.value)


def test_the_public_forges_need_no_address(kind: ForgeKind) -> None:
    assert forge_of(kind, "", "t0ken")


@pytest.mark.parametrize(
    "repository",
    [
        "",
        "shop",
        "/shop",
        "team/",
        "team/../shop",
        "team/.",
        "team//shop",
        "team/sh op",
        "team/shop?x=1",
        "team/shop#x",
        "team/shop\n",
        "team/shöp",
        "team\\shop",
        "team/%2e%2e",
    ],
)
def test_what_is_no_path_of_a_repository_is_not_asked_for(kind: ForgeKind, repository: str) -> None:
    forge = forge_of(kind, "http://127.0.0.1:9", "t0ken")

    with pytest.raises(ForgeFailed, match="is not the path of a repository") as failure:
        forge.default_branch(repository)

    assert failure.value.is_final


def test_groups_are_in_groups_on_gitlab_alone() -> None:
    path = "team/tools/hammers/small"
    with StubForge("gitlab", repository=path) as gitlab, StubForge("github") as github:
        branch = forge_of("gitlab", gitlab.url, gitlab.token).default_branch(path)
        with pytest.raises(ForgeFailed, match="on GitHub"):
            forge_of("github", github.url, github.token).default_branch(path)

    assert branch == "main"
    assert github.log == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 60),
        ({"retry-after": "7", "x-ratelimit-reset": "9999999999"}, 7),
        ({"retry-after": "Mon, 02 Mar 2026 10:00:30 GMT", "date": AT}, 30),
        ({"x-ratelimit-reset": str(AT_EPOCH + 90), "date": AT}, 90),
        ({"ratelimit-reset": str(AT_EPOCH + 45), "date": AT}, 45),
        ({"ratelimit-reset": str(AT_EPOCH - 45), "date": AT}, 60),
        ({"ratelimit-reset": str(AT_EPOCH + 45)}, 60),
        ({"x-ratelimit-reset": str(AT_EPOCH + 90_000), "date": AT}, 3600),
        ({"ratelimit-reset": "9" * 5000, "date": AT}, 60),
        ({"retry-after": "9" * 12}, 3600),
        ({"retry-after": "9" * 5000}, 60),
        ({"retry-after": "soon", "date": "never"}, 60),
        ({"retry-after": "-3", "date": AT}, 60),
        ({"retry-after": "²"}, 60),
        ({"retry-after": "0"}, 60),
    ],
)
def test_a_forge_is_left_alone_for_as_long_as_it_asks(
    headers: dict[str, str], seconds: int
) -> None:
    assert wait_seconds(headers) == seconds


def test_a_forge_proves_by_a_certificate_that_it_is_the_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")

    with StubForge("gitlab", tls=context) as stub:
        forge = forge_of("gitlab", stub.url, stub.token)
        with pytest.raises(ForgeFailed, match="CERTIFICATE_VERIFY_FAILED"):
            forge.default_branch(REPOSITORY)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))

        assert forge.default_branch(REPOSITORY) == "main"
        assert len(stub.log) == 1
