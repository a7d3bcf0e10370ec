"""Checkouts of git repositories: which locations are allowed, and a fetch that does no harm.

Neither the location nor the repository is trusted. `url_fault`, `is_ref` and `path_is_sound`
decide what may become an argument of git. `check_out` then works in a draft directory of its own:
it initialises a repository without templates, fetches one commit, lists its tree, refuses too much,
and only then writes files. Git runs without hooks, filters, links, submodules and prompts, without
the variables that would lead it to another repository, and with the user's own settings only where
it talks to a server. Everything must end before one deadline; then its process group is killed.
"""

import os
import re
import time
from pathlib import Path, PurePosixPath
from typing import Literal

from interlock.core.git_names import is_commit
from interlock.workspace.git.runner import NO_USER_SETTINGS, NOT_STARTED, TIMED_OUT, run_git

UrlFault = Literal["option", "characters", "protocol", "credentials", "address"]

FETCH_SECONDS_MAX = 120.0  # for one source, from the first contact with its server to the last file
TREE_FILES_MAX, TREE_BYTES_MAX = 20_000, 256 * 1024 * 1024  # a small pack can unfold to anything
TREE_DEPTH_MAX = 64  # a checkout is removed again by a function that calls itself
_OUTPUT_BYTES_MAX = 4 * 1024 * 1024
_STDERR_LINES_MAX, _STDERR_LENGTH_MAX = 3, 400
_LOCATION_LENGTH_MAX, _ARGUMENT_LENGTH_MAX = 2048, 255

_HOST = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_SCP_ADDRESS = re.compile(rf"(?:{_USER.pattern}@)?[A-Za-z0-9][A-Za-z0-9._-]*:(?!-).+")
_SCP_PASSWORD = re.compile(r"[^/@:]+:[^/@]*@")

_SAFE_SETTINGS = {
    "core.symlinks": "false",
    "core.autocrlf": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",  # it would continue in the background, in a removed directory
}
_SERVER_PROTOCOLS = {"GIT_ALLOW_PROTOCOL": "https:ssh:file"}
# Stronger than any .gitattributes: files are written as they were committed, and no program runs.
_ATTRIBUTES = "* -text !filter -ident !working-tree-encoding\n"
# The user's ways to reach a server. Other GIT_ variables say which repository git is in, or whose.
SERVER_VARIABLES = {
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
}


def unattended_variables() -> dict[str, str]:
    """The user's ways to reach a server, for git that runs where nobody can be asked."""
    ways = {name: os.environ[name] for name in SERVER_VARIABLES if name in os.environ}
    return ways | {"SSH_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}


class SourceFailure(Exception):
    """A source cannot be fetched or stored. `hint` says what a person can do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def check_out(draft: Path, location: str, *, ref: str | None, path: str | None) -> str:
    """Fetch one commit into the empty directory `draft` and write its files to `tree` there.

    Returns the commit. With a `path` only the files below it are written.

    Raises:
        SourceFailure: git is missing, refuses or takes too long, or there is too much.
        OSError: the directory cannot be written.
    """
    deadline = time.monotonic() + FETCH_SECONDS_MAX
    tree = draft / "tree"
    tree.mkdir(mode=0o700)
    git = _Git(draft, location, deadline)
    git.run("init", "--quiet", "--template=")
    (draft / "git" / "info").mkdir(exist_ok=True)
    (draft / "git" / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
    options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
    git.run("fetch", *options, "--", location, ref or "HEAD", is_local=False)
    commit = git.run("rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}").decode().strip()
    assert is_commit(commit), "git names commits so"
    listing = git.run(
        "ls-tree", "-r", "-l", "-z", "--full-tree", "--", commit, *((path,) if path else ())
    )
    _refuse_too_much(location, listing)
    if listing:
        git.run("checkout", "--quiet", "--force", commit, "--", path or ".")
    if path and not is_directory_below(tree, path):
        raise SourceFailure(
            f"`{location}` has no directory `{path}` at commit {commit[:12]}",
            "`--path` names a directory of the repository, from its top.",
        )
    return commit


def _refuse_too_much(location: str, listing: bytes) -> None:
    records = [record.partition(b"\t") for record in listing.split(b"\0") if record]
    sizes = [head.split()[-1] for head, _, _ in records]
    size = sum(int(word) for word in sizes if word.isdigit())  # a submodule has none
    depth = max((name.count(b"/") for _, _, name in records), default=0)
    is_cut = len(listing) > _OUTPUT_BYTES_MAX
    if is_cut or len(records) > TREE_FILES_MAX or size > TREE_BYTES_MAX or depth > TREE_DEPTH_MAX:
        raise SourceFailure(
            f"`{location}` holds too much: more than {TREE_FILES_MAX} files,"
            f" {TREE_BYTES_MAX // 1024 // 1024} MiB or {TREE_DEPTH_MAX} levels",
            "Choose a directory of it with `--path`: nothing else is then written.",
        )


class _Git:
    """Runs git in one draft, until one deadline."""

    def __init__(self, draft: Path, location: str, deadline: float) -> None:
        self._draft, self._location, self._deadline = draft, location, deadline

    def run(self, *arguments: str, is_local: bool = True) -> bytes:
        """Return what git prints: if that is more than the limit, one byte more than the limit."""
        variables = {"GIT_ATTR_NOSYSTEM": "1", "GIT_LITERAL_PATHSPECS": "1"}
        # Only what talks to a server needs the user's proxies and credential helpers.
        variables |= NO_USER_SETTINGS if is_local else _SERVER_PROTOCOLS | unattended_variables()
        result = run_git(
            self._draft / "tree",
            *("--git-dir", str(self._draft / "git"), "--work-tree", str(self._draft / "tree")),
            *arguments,
            variables=variables,
            settings=_SAFE_SETTINGS,
            has_network=not is_local,
            umask=0o077,  # it is in the data home
            seconds=max(0.0, self._deadline - time.monotonic()),
            output_bytes_max=_OUTPUT_BYTES_MAX + 1,
        )
        if result.code == 0:
            return result.raw
        if result.code == NOT_STARTED:
            raise SourceFailure(
                "git is not installed, or not in PATH",
                "Install git. A source that is a directory needs none.",
            )
        if result.code == TIMED_OUT:
            raise SourceFailure(
                f"`{self._location}` did not arrive within {FETCH_SECONDS_MAX:.0f} s",
                "Try again later, or fetch it yourself and add the directory.",
            )
        raise SourceFailure(
            f"git cannot fetch `{self._location}`: {_last_error_lines(result.error)}",
            "Check the address, the ref and your access: `git ls-remote LOCATION` asks the same.",
        )


def _last_error_lines(text: str) -> str:
    """Return the end of git's messages, without characters that could control a terminal."""
    lines = [line.strip() for line in text.partition("\nPlease make sure")[0].splitlines()]
    message = "; ".join(
        line.removeprefix("fatal: ") for line in list(filter(None, lines))[-_STDERR_LINES_MAX:]
    )
    printable = "".join(char if char.isprintable() else "?" for char in message)
    return printable[-_STDERR_LENGTH_MAX:] or "it does not say why"


def path_is_sound(path: str) -> bool:
    """Whether it can be a directory below the top of a repository, outside git's own."""
    parts = PurePosixPath(path).parts
    is_short = len(path) <= _ARGUMENT_LENGTH_MAX
    is_below = not path.startswith("/") and ".." not in parts
    is_reserved = not parts or ".git" in path.lower().split("/")
    return is_short and is_below and path.isprintable() and not is_reserved


def is_directory_below(base: Path, path: str) -> bool:
    """Whether the directory `path` exists and is, links followed, below `base`."""
    directory = (base / path).resolve()
    return directory.is_dir() and directory.is_relative_to(base.resolve())


def url_fault(location: str) -> UrlFault | None:
    """Return why git must not fetch from there; None if it may."""
    if location.startswith("-"):
        return "option"
    if not location.isprintable() or len(location) > _LOCATION_LENGTH_MAX:
        return "characters"
    scheme, separator, rest = location.partition("://")
    if separator and "/" not in scheme:
        return _authority_fault(scheme, rest)
    if "::" in location.partition("/")[0]:  # a remote helper: `ext::sh -c …`
        return "protocol"
    if location.startswith("/"):
        return None
    if _SCP_PASSWORD.match(location):
        return "credentials"
    return None if _SCP_ADDRESS.fullmatch(location) else "address"


def _authority_fault(scheme: str, rest: str) -> UrlFault | None:
    if scheme not in ("https", "ssh", "file"):
        return "protocol"
    if scheme == "file":
        return None if rest.startswith("/") else "address"
    authority, _, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    # A token looks like a name alone, and https needs no name.
    if ":" in user or (user and scheme == "https"):
        return "credentials"
    is_sound = _HOST.fullmatch(host) and (not user or _USER.fullmatch(user))
    return None if is_sound and path else "address"
