"""The state of a session, read without anything of Interlock that takes long to import.

The fast hook and the sandboxed shell ask it before every call. Whatever is odd raises, and the
caller falls back on what is slower or stricter.
"""

import posix
import sys
import time

from interlock.sandbox.real_path import real_path

BUSY_SECONDS = 0.05  # the writers are done in a millisecond
OVERRIDE_MS_MAX = 3_600_000
MODES = ("analysis", "planning", "coding", "disabled")


class ConversationRow:
    """The row of a conversation, as far as it is read here."""

    def __init__(
        self,
        root: str,
        mode: str,
        *,
        is_settled: bool,
        watched: str,
        has_news: bool = False,
        is_contested: bool = False,
    ) -> None:
        self.root = root
        self.mode = mode
        self.is_settled = is_settled
        """Whether the session has started, and mode and class of a tool decide."""
        self.watched = watched
        """Lines with stamp and path of the files that make the gate work."""
        self.has_news = has_news
        """Whether the agent has to be told something."""
        self.is_contested = is_contested
        """Whether others have reserved paths in the project."""


class _Functools:
    """`_sqlite3` wants a cache of statements from `functools`, which costs more than all else."""

    @staticmethod
    def lru_cache(_: int) -> object:
        return lambda connection: connection  # pyright: ignore[reportUnknownLambdaType,reportUnknownVariableType]


def read_state(host: str, home: str, conversation: str) -> ConversationRow | None:
    """The row of the conversation; None if there is none.

    Raises:
        Exception: it cannot be read, or makes no sense.
    """
    if not is_there(f"{home}/gate.db"):
        return None
    is_stub = sys.modules.setdefault("functools", _Functools) is _Functools  # pyright: ignore[reportArgumentType,reportUnnecessaryComparison]
    import _sqlite3  # noqa: PLC0415 (many calls need no state)

    if is_stub:
        del sys.modules["functools"]  # others want the real one
    quoted_home = home.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    db = _sqlite3.connect(f"file:{quoted_home}/gate.db?mode=ro", timeout=BUSY_SECONDS, uri=True)
    sql = (
        "SELECT root, mode, is_started, is_simple, watched, has_news, EXISTS (SELECT 1 FROM"
        " reservation r WHERE r.project = gate.project AND r.session != gate.session"
        " AND r.until_ms > ?) FROM gate"
    )
    try:
        values = (now_ms(), host, conversation)
        row = db.execute(f"{sql} WHERE (host, host_session) = (?, ?)", values)
        found = row.fetchone()
    finally:
        db.close()
    if not found:
        return None
    root, mode, is_started, is_simple, watched, has_news, is_contested = found
    if mode not in MODES or not isinstance(root, str):
        raise ValueError(f"the mode {mode!r} is not known")
    return ConversationRow(
        root,
        mode,
        is_settled=(is_started, is_simple) == (1, 1),
        watched=watched,
        has_news=has_news != 0,
        is_contested=is_contested != 0,
    )


def config_above(directory: str) -> str:
    """The config of the project around a directory; empty if none has opted in.

    Raises:
        OSError: it cannot be told.
    """
    if not directory.startswith("/"):
        raise ValueError("the directory is not absolute")
    while not is_there(path := f"{directory}/.interlock/config.toml"):
        if posix.stat(directory)[1:3] == posix.stat("/")[1:3]:
            return ""
        directory += "/.."  # the system resolves links before it takes this
    return path


def may_have_vanished(directory: str, home: str) -> bool:
    """Whether a project around a directory may have opted in before, so that its config is missed.

    Raises:
        OSError: it cannot be told.
    """
    if not is_there(path := f"{home}/trusted.json"):
        return False
    file = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    content = b"".join(iter(lambda: posix.read(file, 1 << 16), b"")).decode()
    posix.close(file)
    folder = real_path(directory)
    if not folder.isprintable() or "\\" in folder or '"' in folder:
        return True  # it may be written otherwise there
    while folder:
        if f'"{folder}"' in content:
            return True
        folder = folder.rpartition("/")[0]
    return False


def is_untouched(watched: str) -> bool:
    """Whether every watched file still has its stamp: identity, size and times.

    Raises:
        OSError: one of them is gone.
    """
    for line in watched.split("\n"):
        stamp, _, path = line.partition("\t")
        at = posix.stat(path)
        if stamp != f"{at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns} {at.st_ctime_ns}":
            return False
    return True


def is_there(path: str) -> bool:
    try:
        posix.lstat(path)
    except (FileNotFoundError, NotADirectoryError):  # and not: too long, not allowed
        return False
    return True


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def is_overridden(home: str) -> bool:
    """Whether the user has switched the gate off for a while. A time too far ahead is a mistake."""
    try:
        file = posix.open(f"{home}/gate-off", posix.O_RDONLY | posix.O_NONBLOCK)
    except FileNotFoundError:
        return False
    content = posix.read(file, 4096).decode(errors="replace")
    posix.close(file)
    digits = content.partition('"untilMs":')[2].partition("}")[0].partition(",")[0].strip()
    left_ms = int(digits) - now_ms() if digits.isdecimal() else 0
    return 0 < left_ms <= OVERRIDE_MS_MAX
