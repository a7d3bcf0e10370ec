"""Where a path leads: the one answer that every rule about secrets and protected files uses."""

import posix

LINKS_MAX = 40  # as Linux has it
PROCESS_FILES = ("cwd", "fd", "map_files", "environ", "mem")
"""Names below `/proc` that lead elsewhere in each process, or to its memory."""
NO_LINK = (2, 20, 22, 36, 63)  # ENOENT, ENOTDIR, EINVAL, ENAMETOOLONG on Linux and on macOS


def real_path(path: str, *, follows: bool = True) -> str:
    """Return the absolute path without links, `.`, `..` and empty parts. It need not exist.

    Without `follows`, links stay: many clients remove `..` before the system follows them.

    Raises:
        OSError: it cannot be followed, or leads to another file in each process.
        ValueError: it has a zero byte in it.
    """
    pending, real, link_count = path.split("/")[::-1], list[str](), 0
    while pending:
        part = pending.pop()
        if part == "..":
            real[-1:] = []
        if part in ("", ".", ".."):
            continue
        real.append(part)
        if not follows:
            continue
        # A task of the client is none of ours, although `self` was.
        is_others = part == "root" and set(real[1:-1]) - {"task", str(posix.getpid())}
        if real[0] == "proc" and (part in PROCESS_FILES or is_others):
            raise OSError(f"`{path}` differs by process")
        try:
            target = posix.readlink(f"/{'/'.join(real)}")
        except OSError as error:
            if error.errno in NO_LINK:
                continue
            raise
        link_count += 1
        if link_count > LINKS_MAX:
            raise OSError(f"`{path}` has too many links")
        real = [] if target.startswith("/") else real[:-1]
        pending += target.split("/")[::-1]
    return f"/{'/'.join(real)}"
