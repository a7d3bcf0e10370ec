"""The broker: changes modes and times for the sandbox where that may write, and connects for it.

Landlock has no rule for `chmod` and `utime`, and seccomp does not see paths, so the filter stops
these calls and asks the wrapper. The wrapper opens the file that is meant without touching it,
looks where it is, and makes the change itself through that very descriptor. Nothing that the
sandbox does meanwhile can aim it elsewhere: no path is looked at twice. Likewise, a socket is
connected to our proxy, whatever the address has become meanwhile.
"""

import _socket
import _thread
import ctypes
import os
from _struct import pack, unpack

from interlock.sandbox.system_calls import NUMBERS

EPERM, ENOENT, ESRCH, EINTR, EACCES = 1, 2, 3, 4, 13
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_REQUEST_BYTES, _TIMES_BYTES, _PATH_BYTES_MAX, _PAGE_BYTES = 80, 32, 4096, 4096
_CURRENT_DIRECTORY, _NO_FOLLOW, _MAY_BE_EMPTY = 0xFFFFFF9C, 0x100, 0x1000
_PLAIN_MODE_BITS = 0o1777  # never a file that would run as its owner
_UNCHANGED = 0xFFFFFFFF

# The positions of directory, path, flags and the first value among the arguments of each call.
_POSITIONS: dict[str, tuple[int | None, int | None, int | None, int]] = {
    "chmod": (None, 0, None, 1),
    "fchmod": (0, None, None, 1),
    "fchmodat": (0, 1, None, 2),
    "fchmodat2": (0, 1, 3, 2),
    "chown": (None, 0, None, 1),
    "lchown": (None, 0, None, 1),
    "fchown": (0, None, None, 1),
    "fchownat": (0, 1, 4, 2),
    "utimensat": (0, 1, 3, 2),
}
_OWN_PATHS = (
    *((b"/proc/self/", b""), (b"/proc/thread-self/", b""), (b"/dev/fd/", b"fd/")),
    *((b"/dev/stdin", b"fd/0"), (b"/dev/stdout", b"fd/1"), (b"/dev/stderr", b"fd/2")),
)
"""Paths that mean something else in each process, and what they mean below `/proc/PID`."""
BROKERED = {NUMBERS[name]: name for name in _POSITIONS if name in NUMBERS}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.sandbox.network_proxy import NetworkProxy

_library = ctypes.CDLL(None, use_errno=True)


Channel = _socket.socket


def make_channel() -> tuple[Channel, Channel]:
    """The two ends of a channel over which the child hands its listener to the wrapper."""
    return _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)


def send_listener(channel: Channel, listener: int) -> None:
    channel.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, pack("i", listener))])


def serve(channel: Channel, roots: tuple[str, ...], proxy: "NetworkProxy | None" = None) -> None:
    """Answer in a thread, for as long as this process lives, once the child has sent a listener."""
    _, received, _, _ = channel.recvmsg(1, _socket.CMSG_SPACE(4))
    for _, _, content in received:
        (listener,) = unpack("i", content[:4])
        _thread.start_new_thread(_answer_all, (listener, roots, proxy))


def _answer_all(listener: int, roots: tuple[str, ...], proxy: "NetworkProxy | None") -> None:
    while True:
        request = ctypes.create_string_buffer(_REQUEST_BYTES)
        if _ioctl(listener, _RECEIVE, request):
            number = ctypes.get_errno()
            if number == EINTR or (number == ENOENT and _is_needed(listener)):
                continue
            return
        identity, process, _, number, _, _, *arguments = unpack("QIIiIQ6Q", request.raw)
        try:
            if number == NUMBERS["connect"]:
                error = _connect(listener, identity, process, arguments, proxy)
            else:
                name = BROKERED[number]
                error = _perform(listener, identity, process, name, arguments, roots=roots)
        except OSError as failure:
            error = failure.errno or EPERM
        except Exception:  # noqa: BLE001 (whatever it was, the call must get an answer)
            error = EPERM
        _ioctl(listener, _SEND, pack("QqiI", identity, 0, -error, 0))


def _is_needed(listener: int) -> bool:
    """Whether a process of the sandbox is left; the kernel does not wait for a call if none is."""
    import select  # noqa: PLC0415 (rarely needed: at the end, or if a caller is killed)

    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return not any(events & select.POLLHUP for _, events in poll.poll(0))


def _connect(
    listener: int,
    identity: int,
    process: int,
    arguments: list[int],
    proxy: "NetworkProxy | None",
) -> int:
    """Connect a socket to the proxy, if that is what is asked for: the number of the error, or 0.

    Raises:
        OSError: the process is gone.
    """
    file, address, size, *_ = arguments
    if proxy is None or size < len(proxy.address):
        return EACCES
    if _memory(process, address, len(proxy.address)) != proxy.address:
        return EACCES
    return proxy.connect(_take_file(listener, identity, process, file))


def _take_file(listener: int, identity: int, process: int, number: int) -> int:
    """A duplicate of a file that a thread of the sandbox has open.

    Raises:
        OSError: there is none, or the thread is gone.
    """
    with open(f"/proc/{process}/status", "rb") as status:
        leader = int(status.read().partition(b"\nTgid:")[2].split()[0])
    handle = os.pidfd_open(leader)
    try:
        if _ioctl(listener, _IS_VALID, pack("Q", identity)):
            raise OSError(ESRCH, "the process is gone")
        call = ctypes.c_long(NUMBERS["pidfd_getfd"])
        file = _library.syscall(call, handle, ctypes.c_long(number & 0xFFFFFFFF), 0)
    finally:
        os.close(handle)
    if file < 0:
        raise OSError(ctypes.get_errno(), "the file cannot be taken")
    return int(file)


def _ioctl(file: int, code: int, content: object) -> int:
    return _library.ioctl(file, ctypes.c_ulong(code), content)


def _perform(
    listener: int,
    identity: int,
    process: int,
    name: str,
    arguments: list[int],
    *,
    roots: tuple[str, ...],
) -> int:
    """Make the change. Returns the number of the error, or 0.

    Raises:
        OSError: the file cannot be opened.
    """
    directory, path, flags, value = _POSITIONS[name]
    given_flags = 0 if flags is None else arguments[flags]
    follows = name != "lchown" and not given_flags & _NO_FOLLOW
    base = _CURRENT_DIRECTORY if directory is None else arguments[directory] & 0xFFFFFFFF
    address = 0 if path is None else arguments[path]
    written = _path_in_memory(process, address) if address else b""
    if address and not written and not given_flags & _MAY_BE_EMPTY:
        return ENOENT
    has_times = name == "utimensat" and arguments[value]
    times = _memory(process, arguments[value], _TIMES_BYTES) if has_times else None
    file = _open_target(process, base, written, follows=follows)
    try:
        place = os.readlink(f"/proc/self/fd/{file}")
        is_inside = any(place == root or place.startswith(f"{root}/") for root in roots)
        # The process may be gone, and its number be that of another one.
        if not is_inside or _ioctl(listener, _IS_VALID, pack("Q", identity)):
            return EPERM
        target = f"/proc/self/fd/{file}".encode()
        if "chown" in name:
            return 0 if _is_owner(file, arguments[value : value + 2]) else EPERM
        if "chmod" in name:
            failed = _library.chmod(target, arguments[value] & _PLAIN_MODE_BITS)
        else:
            failed = _library.utimensat(ctypes.c_int(-100), target, times, 0)
        return ctypes.get_errno() if failed else 0
    finally:
        os.close(file)


def _path_in_memory(process: int, address: int) -> bytes:
    """The text at an address, read page by page: what follows its end may not be mapped."""
    text = b""
    while b"\0" not in text and len(text) < _PATH_BYTES_MAX:
        at = address + len(text)
        page = _memory(process, at, _PAGE_BYTES - at % _PAGE_BYTES)
        if not page:
            raise OSError(ESRCH, "the process is gone")
        text += page
    return text.partition(b"\0")[0]


def _memory(process: int, address: int, size: int) -> bytes:
    file = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    try:
        return os.pread(file, size, address)
    finally:
        os.close(file)


def _open_target(process: int, directory: int, path: bytes, *, follows: bool) -> int:
    start = "cwd" if directory == _CURRENT_DIRECTORY else f"fd/{directory}"
    base = os.open(f"/proc/{process}/{start}", os.O_PATH)
    if not path:
        return base
    for alias, meant in _OWN_PATHS:
        if path.startswith(alias):
            path = b"/proc/%d/%s%s" % (process, meant, path.removeprefix(alias))
            break
    try:
        return os.open(path, os.O_PATH | (0 if follows else os.O_NOFOLLOW), dir_fd=base)
    finally:
        os.close(base)


def _is_owner(file: int, owner: list[int]) -> bool:
    """Whether user and group would stay as they are."""
    status = os.fstat(file)
    pairs = zip(owner, (status.st_uid, status.st_gid), strict=True)
    return all(wanted & _UNCHANGED in (_UNCHANGED, present) for wanted, present in pairs)
