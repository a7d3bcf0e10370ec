"""Confine this process and all that it will start, for good: Landlock, capabilities, seccomp.

Landlock is an allow-list by directory. A right that a rule set *handles* is refused everywhere but
beneath the paths to which a rule grants it, and a rule cannot take anything back further down. So
what must stay readable except for one directory is granted piece by piece around that directory.

The order matters: without new privileges no program gains rights by being started, which is also
what lets an ordinary user confine itself; Landlock needs to open paths, so it comes before seccomp.
"""

import ctypes
import os
from _struct import pack

from interlock.sandbox import call_filter
from interlock.sandbox.plain_files import GuardedFiles
from interlock.sandbox.system_calls import IS_SUPPORTED, NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.sandbox.network_proxy import NetworkProxy

ABI_MIN = 3
"""Before it Landlock does not see `truncate`, and nothing is promised."""
ABI_TCP, ABI_DEVICE_IOCTLS, ABI_SCOPES, ABI_UNIX_SOCKETS = 4, 5, 6, 9
READ_FILE, READ_DIRECTORY = 1 << 2, 1 << 3
_WRITING = 0x1FF2 | 1 << 13 | 1 << 14  # write, make, remove, REFER (links, renames), TRUNCATE
_DEVICE_IOCTL, _UNIX_SOCKET = 1 << 15, 1 << 16
_FILE_WRITING = 1 << 1 | 1 << 14
_TCP_BIND_AND_CONNECT, _SIGNALS_AND_ABSTRACT_SOCKETS = 3, 3
_RULE_BENEATH_PATH, _ASK_VERSION = 1, 1
_PR_SET_NO_NEW_PRIVILEGES, _PR_DROP_BOUNDING, _PR_SECURE_BITS = 38, 24, 28
_PR_AMBIENT, _AMBIENT_RAISE, _SECCOMP_SET_FILTER = 47, 2, 1
_SECCOMP_NEW_LISTENER = 8
_CAPABILITY_VERSION, _CAPABILITIES_MAX, _CAP_READ_ANY_FILE = 0x20080522, 64, 2
_ROOT_IS_NOBODY_SPECIAL = 0x2F  # NOROOT, NO_SETUID_FIXUP and KEEP_CAPS, the first two locked
_KIND_MASK, _KIND_DIRECTORY, _KIND_LINK = 0o170000, 0o040000, 0o120000
_CLONE_INTO_GROUP, _SIGCHLD = 1 << 33, 17
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")

_library = ctypes.CDLL(None, use_errno=True)


class ConfinementFailed(Exception):
    """The kernel did not do it; nothing may be run now."""


class Boundary:
    """The reach of a process. Paths are real ones; those that do not exist grant nothing."""

    def __init__(
        self,
        scratch: str,
        hidden: tuple[str, ...],
        *,
        writable: tuple[str, ...] = ("/dev/shm",),
        readable: tuple[str, ...] | None = None,
        files: tuple[str, ...] = (),
        socket_families: tuple[int, ...] = (),
        guarded_files: GuardedFiles | None = None,
        proxy: "NetworkProxy | None" = None,
    ) -> None:
        self.scratch = scratch
        """A private directory that exists, and lasts."""
        self.hidden = hidden
        """Directories beneath which no file is read, but in those that are writable."""
        self.writable = (scratch, *writable)
        self.readable = readable
        """None: everything but `hidden`."""
        self.files: tuple[str, ...] = (*files, "/proc/self/fd/1", "/proc/self/fd/2")
        """Single files that it may write."""
        self.socket_families = socket_families
        self.proxy = proxy
        """All that sockets of the families `PROXIED` can be connected to."""
        self.guarded_files = guarded_files or {}
        """Files by which git finds its settings and branch, checked after the command."""


def landlock_abi() -> int:
    """The version of Landlock on this machine; 0 if there is none, or none that we can use."""
    return max(_call("landlock_create_ruleset", None, 0, _ASK_VERSION), 0) if IS_SUPPORTED else 0


def confine(boundary: Boundary, abi: int, brokered: dict[int, str]) -> int:
    """Confine this process. Returns the listener for those calls that a broker answers.

    Raises:
        ConfinementFailed: the kernel refused a part of it.
    """
    if abi < ABI_MIN:
        raise ConfinementFailed(f"Landlock has version {abi} here, and {ABI_MIN} is needed")
    _drop_capabilities()
    if _library.prctl(_PR_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise ConfinementFailed("privileges could not be given up")
    _restrict_paths(boundary, abi)
    return _filter_calls(boundary, brokered)


def _call(name: str, *arguments: int | bytes | None) -> int:
    """The result of a system call; if it fails, the negative error number."""
    values = [ctypes.c_long(x) if isinstance(x, int) else x for x in arguments]
    result: int = _library.syscall(ctypes.c_long(NUMBERS[name]), *values)
    return result if result >= 0 else -ctypes.get_errno()


def close_descriptors(first: int) -> None:
    if _call("close_range", first, 0xFFFFFFFF, 0) < 0:
        os.closerange(first, 65536)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to end this process with its parent, which may be gone already."""
    _library.prctl(1, 9, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _library.prctl(36, 1, 0, 0, 0)


def take_own_shared_memory() -> None:
    """Give this process and its children a `/dev/shm` of their own, as root where that is allowed.

    A user namespace would let others do so, but then files of strangers belong to nobody. It is
    done before the fork, so that the broker sees the same files.
    """
    new_mounts, to_all_below, only_receiving, no_devices_or_setuid = 0x20000, 0x4000, 0x80000, 6
    if os.geteuid() or _library.unshare(new_mounts):
        return
    # Else what is mounted now would appear outside, too.
    if not _library.mount(None, b"/", None, to_all_below | only_receiving, None):
        options = b"mode=1777,size=25%"
        _library.mount(b"tmpfs", b"/dev/shm", b"tmpfs", no_devices_or_setuid, options)


def fork_into_group(group: str) -> int:
    """Fork; the child begins in a control group of version 2. Negative if that cannot be done.

    Moving a process later waits until all processors have noticed, which takes 10 ms.
    """
    folder = os.open(group, os.O_RDONLY | os.O_CLOEXEC)
    arguments = pack("11Q", _CLONE_INTO_GROUP, 0, 0, 0, _SIGCHLD, 0, 0, 0, 0, 0, folder)
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    # Unlike `_library`, this one keeps the lock of the interpreter, which the child needs.
    call = ctypes.PyDLL(None).syscall
    child: int = call(ctypes.c_long(NUMBERS["clone3"]), arguments, len(arguments))
    after = python.PyOS_AfterFork_Parent if child else python.PyOS_AfterFork_Child
    after()
    os.close(folder)
    return child


def _drop_capabilities() -> None:
    """Root keeps the right to read any file, and nothing else that root may."""
    kept = [_CAP_READ_ANY_FILE] if os.geteuid() == 0 else []
    for capability in range(_CAPABILITIES_MAX):
        if capability not in kept:
            _library.prctl(_PR_DROP_BOUNDING, capability, 0, 0, 0)
    _library.prctl(_PR_SECURE_BITS, _ROOT_IS_NOBODY_SPECIAL, 0, 0, 0)
    bits = sum(1 << capability for capability in kept)
    sets = pack("IIIIII", bits, bits, bits, 0, 0, 0)
    if _call("capset", pack("II", _CAPABILITY_VERSION, 0), sets) < 0:
        raise ConfinementFailed("capabilities could not be given up")
    for capability in kept:
        _library.prctl(_PR_AMBIENT, _AMBIENT_RAISE, capability, 0, 0)


def _restrict_paths(boundary: Boundary, abi: int) -> None:
    writing = _WRITING
    writing |= _DEVICE_IOCTL if abi >= ABI_DEVICE_IOCTLS else 0
    has_daemons = call_filter.AF_UNIX in boundary.socket_families
    writing |= _UNIX_SOCKET if abi >= ABI_UNIX_SOCKETS and not has_daemons else 0
    handled = writing | READ_FILE | (READ_DIRECTORY if boundary.readable is not None else 0)
    has_network = boundary.socket_families not in ((), call_filter.PROXIED)
    tcp = _TCP_BIND_AND_CONNECT if abi >= ABI_TCP and not has_network else 0
    scopes = _SIGNALS_AND_ABSTRACT_SOCKETS if abi >= ABI_SCOPES else 0
    size = 24 if abi >= ABI_SCOPES else 16 if abi >= ABI_TCP else 8
    rules = _call("landlock_create_ruleset", pack("QQQ", handled, tcp, scopes)[:size], size, 0)
    if rules < 0:
        raise ConfinementFailed(f"Landlock took no rules: {os.strerror(-rules)}")
    for path in boundary.writable:
        _grant(rules, path, handled)
    for path in (*_DEVICES, *boundary.files):
        _grant(rules, path, handled & (_FILE_WRITING | READ_FILE | _DEVICE_IOCTL))
    for path in ("",) if boundary.readable is None else boundary.readable:
        _grant_around(rules, path, boundary.hidden, handled & (READ_FILE | READ_DIRECTORY))
    failure = _call("landlock_restrict_self", rules, 0)
    os.close(rules)
    if failure:
        raise ConfinementFailed(f"Landlock did not take effect: {os.strerror(-failure)}")


def _grant(rules: int, path: str, rights: int, *, follows_links: bool = True) -> None:
    """Grant rights beneath a path. One that cannot be opened grants nothing, which is safe."""
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    try:
        file = os.open(path, flags)
    except OSError:
        return
    kind = os.fstat(file).st_mode & _KIND_MASK
    if kind != _KIND_DIRECTORY:
        rights &= _FILE_WRITING | READ_FILE | _DEVICE_IOCTL
    if kind != _KIND_LINK:
        _call("landlock_add_rule", rules, _RULE_BENEATH_PATH, pack("=Qi", rights, file), 0)
    os.close(file)


def _grant_around(rules: int, path: str, hidden: tuple[str, ...], rights: int) -> None:
    """Let all in a directory be read but what is hidden: grant what is beside the way to that."""
    if path in hidden:
        return
    if not any(place.startswith(f"{path}/") for place in hidden):
        # A link could lead to what is hidden; where it leads elsewhere is granted there.
        _grant(rules, path, rights, follows_links=False)
        return
    try:
        names = os.listdir(path or "/")
    except OSError:
        return  # nobody can look there, so there is nothing to grant
    for name in names:
        _grant_around(rules, f"{path}/{name}", hidden, rights)


def _filter_calls(boundary: Boundary, brokered: dict[int, str]) -> int:
    code = call_filter.build_filter(brokered, boundary.socket_families)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    listener = _call("seccomp", _SECCOMP_SET_FILTER, _SECCOMP_NEW_LISTENER, program)
    if listener < 0:
        raise ConfinementFailed(f"seccomp took no filter: {os.strerror(-listener)}")
    return listener
