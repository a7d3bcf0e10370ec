"""Names that other programs give to commits, refs and repositories, checked before git sees them.

Git takes a name with a leading `-` for an option, and `--upload-pack=…` is a program to run.
"""

import re

COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NOT_IN_REF = re.compile(r"[\s~^:?*\[\\]|\.\.|@\{|//|^[-+/.]|[/.]$|/\.|\.lock(?:/|$)|^@$")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,255}(/[A-Za-z0-9_.-]{1,255}){1,20}")
_REF_CHARS_MAX = 255
_BRANCHES, _DEFAULT_BRANCH = "refs/heads/", "HEAD"


def is_commit(text: str) -> bool:
    """Whether the text is the full name of a commit."""
    return COMMIT.fullmatch(text) is not None


def is_ref(text: str) -> bool:
    """Whether `git check-ref-format` takes it, and it is neither a refspec nor an option."""
    is_short = 0 < len(text) <= _REF_CHARS_MAX
    return is_short and text.isprintable() and _NOT_IN_REF.search(text) is None


def branch_ref(branch: str) -> str:
    """Return the ref of a remote's branch; without a name, of its default branch."""
    return f"{_BRANCHES}{branch}" if branch else _DEFAULT_BRANCH


def is_branch_ref(ref: str) -> bool:
    """Whether `branch_ref` made it, rather than a forge for a request."""
    return ref == _DEFAULT_BRANCH or ref.startswith(_BRANCHES)


def is_repository_path(text: str) -> bool:
    """Whether it can be the path of a repository on a forge, as in `group/name`."""
    return bool(_REPOSITORY.fullmatch(text)) and {".", ".."}.isdisjoint(text.split("/"))
