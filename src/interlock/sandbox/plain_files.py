"""Small files where those inside may write: read them, and put back what they have changed."""

import os
from _stat import S_ISDIR, S_ISREG

EXACT, COMMIT, PLAIN = "exact", "commit", "plain"
"""Whether a file must match exactly, may name a commit instead, or may be any plain file."""
_BYTES_MAX = 64 * 1024
_COMMIT_LENGTHS, _HEXADECIMAL = (40, 64), b"0123456789abcdef"

GuardedFiles = dict[str, tuple[bytes | None, str]]
"""The expected content of each path (None: no file), and how closely it must match."""


def read_plain_file(path: str) -> bytes | None:
    """The content; None if there is no plain file: it may be a pipe, a link or a device by now."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, _BYTES_MAX) if S_ISREG(os.fstat(file).st_mode) else None
    finally:
        os.close(file)


def put_back(files: GuardedFiles) -> dict[str, str]:
    """Restore each file that differs. Return the outcome for each restored path.

    Their directories must be ones that cannot have been replaced, and nobody may be writing.
    """
    done: dict[str, str] = {}
    for path, (content, other) in files.items():
        if not _differs(path, content, other):
            continue
        try:
            _replace(path, content)
        except OSError as error:
            done[path] = f"could not be put back: {error.strerror}"
        else:
            done[path] = "was removed" if content is None else "was put back"
    return done


def _replace(path: str, content: bytes | None) -> None:
    folder = path.rpartition("/")[0]
    os.chmod(folder, os.stat(folder).st_mode | 0o700)
    if os.path.lexists(path):
        _remove(path)
    if content is not None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(path, flags, 0o644)
        os.write(file, content)
        os.close(file)


def _differs(path: str, content: bytes | None, other: str) -> bool:
    if other == PLAIN:
        return os.path.lexists(path) and not S_ISREG(os.lstat(path).st_mode)
    present = read_plain_file(path)
    if present is None:
        return content is not None or os.path.lexists(path)
    commit = present.removesuffix(b"\n")
    is_commit = len(commit) in _COMMIT_LENGTHS and not commit.strip(_HEXADECIMAL)
    return present != content and not (other == COMMIT and is_commit)


def _remove(path: str) -> None:
    if not S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    from shutil import rmtree  # noqa: PLC0415 (rarely needed)

    os.chmod(path, 0o700)
    for folder, names, _ in os.walk(path):
        for inner in (f"{folder}/{name}" for name in names):
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)  # without this, only root can empty the directory
    rmtree(path)
