"""The seccomp filter: a program for the kernel that answers each system call of the sandbox.

It is a list of instructions of the classic packet filter. Each block tests the number of the call,
decides, and ends in an answer, so that every jump is short and forward. What no block answers is
allowed: what may be opened or removed is for Landlock to say.
"""

from _struct import pack

from interlock.sandbox import system_calls
from interlock.sandbox.system_calls import NUMBERS

ALLOW, KILL, ERRNO, ASK_BROKER = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
EPERM, EACCES, ENOTTY, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT = 1, 13, 25, 38, 95, 97
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
"""Where the kernel puts these for the filter; an argument has eight bytes, the low ones first."""
LOAD, RETURN, AND, SHIFT_RIGHT = 0x20, 0x06, 0x54, 0x74
IF_EQUAL, IF_GREATER, IF_ANY_BIT = 0x15, 0x25, 0x45

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE = 1, 2, 10, 16, 0
EVERY_FAMILY = (AF_UNIX, AF_INET, AF_INET6)
"""The families of daemons and networks; there are others, which ordinary programs do without."""
PROXIED = (AF_INET,)
"""The families with which a command can connect to our proxy, and to nothing else."""
IPPROTO_TCP, MSG_FASTOPEN = 6, 0x20000000
_SENDING = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
"""The positions of the flags of calls that could connect, too."""
SOCK_TYPE_MASK, SOCK_STREAM, SOCK_SEQPACKET = 0xF, 1, 5
NEW_NAMESPACES = 0x7E020000
TERMINAL_WRITES = (0x5412, 0x541C, 0x541D, 0x5423)
"""TIOCSTI types on a terminal, TIOCLINUX and TIOCCONS redirect it, TIOCSETD gives it a driver."""
ATTRIBUTE_TYPES = (0x66, 0x58, 0x76, 0x94, 0xF5)
"""The letters of ioctls that set attributes of files (ext, xfs, btrfs, f2fs)."""
FIEMAP, IS_READING, DIRECTION_SHIFT = 0xC020660B, 2, 30


class _Program:
    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, int, int]] = []

    def load(self, offset: int) -> None:
        self.instructions.append((LOAD, 0, 0, offset))

    def load_argument(self, index: int) -> None:
        self.load(ARGUMENTS_AT + 8 * index)

    def compute(self, operation: int, value: int) -> None:
        self.instructions.append((operation, 0, 0, value))

    def answer(self, value: int) -> None:
        self.instructions.append((RETURN, 0, 0, value))

    def answer_if(self, test: int, value: int, answer: int) -> None:
        self.instructions.append((test, 0, 1, value))
        self.answer(answer)

    def begin_call(self, number: int) -> int:
        """Begin a block for one call; what follows up to `end_call` must end in an answer."""
        self.instructions.append((IF_EQUAL, 0, 0, number))
        return len(self.instructions)

    def end_call(self, start: int) -> None:
        test, _, _, number = self.instructions[start - 1]
        self.instructions[start - 1] = (test, 0, len(self.instructions) - start, number)


def build_filter(brokered: dict[int, str], socket_families: tuple[int, ...]) -> bytes:
    """The filter for this machine, in the form that the kernel takes.

    The calls in `brokered` are put to the broker; without one, no metadata is changed. Sockets are
    of the given families.
    """
    program = _Program()
    program.load(ARCHITECTURE_AT)
    program.instructions.append((IF_EQUAL, 1, 0, system_calls.AUDIT_ARCHITECTURE))
    program.answer(KILL)
    program.load(NUMBER_AT)
    # Newer calls than the table knows, and those of x32, which have a high bit.
    program.answer_if(IF_GREATER, system_calls.NEWEST, ERRNO | ENOSYS)
    for number in (*system_calls.FORBIDDEN, *system_calls.METADATA):
        answer = ASK_BROKER if number in brokered else ERRNO | EPERM
        program.answer_if(IF_EQUAL, number, answer)
    for number in system_calls.ATTRIBUTES:
        program.answer_if(IF_EQUAL, number, ERRNO | EOPNOTSUPP)
    for number in system_calls.HIDDEN:
        program.answer_if(IF_EQUAL, number, ERRNO | ENOSYS)
    for number in (*system_calls.FOR_ONESELF, *system_calls.FOR_ONESELF_BY_KIND):
        start = program.begin_call(number)
        if (kind := system_calls.FOR_ONESELF_BY_KIND.get(number)) is not None:
            program.load_argument(0)
            program.instructions.append((IF_EQUAL, 1, 0, kind))
            program.answer(ERRNO | EPERM)
        position = 0 if kind is None else 1
        _refuse_other_process(program, position, may_read=number == NUMBERS["prlimit64"])
        program.end_call(start)
    for name, add_rules in (
        ("clone", _refuse_namespaces),
        ("ioctl", _refuse_ioctls),
        ("socketpair", _refuse_datagram_pairs),
    ):
        start = program.begin_call(NUMBERS[name])
        add_rules(program)
        program.end_call(start)
    is_proxied = socket_families == PROXIED
    if is_proxied:
        _refuse_connections(program)
    start = program.begin_call(NUMBERS["socket"])
    _refuse_sockets(program, socket_families, is_proxied=is_proxied)
    program.end_call(start)
    program.answer(ALLOW)
    return b"".join(pack("HBBI", *instruction) for instruction in program.instructions)


def _refuse_other_process(program: _Program, position: int, *, may_read: bool) -> None:
    program.load_argument(position)
    program.answer_if(IF_EQUAL, 0, ALLOW)
    if may_read:  # with no new limits, it only tells the present ones
        program.load_argument(2)
        program.instructions.append((IF_EQUAL, 0, 3, 0))
        program.load(ARGUMENTS_AT + 8 * 2 + 4)
        program.answer_if(IF_EQUAL, 0, ALLOW)
    program.answer(ERRNO | EPERM)


def _refuse_namespaces(program: _Program) -> None:
    program.load_argument(0)
    program.answer_if(IF_ANY_BIT, NEW_NAMESPACES, ERRNO | EPERM)
    program.answer(ALLOW)


def _refuse_ioctls(program: _Program) -> None:
    program.load_argument(1)
    for code in TERMINAL_WRITES:
        program.answer_if(IF_EQUAL, code, ERRNO | EPERM)
    program.answer_if(IF_EQUAL, FIEMAP, ALLOW)
    program.compute(SHIFT_RIGHT, DIRECTION_SHIFT)
    program.answer_if(IF_EQUAL, IS_READING, ALLOW)
    program.load_argument(1)
    program.compute(SHIFT_RIGHT, 8)
    program.compute(AND, 0xFF)
    for letter in ATTRIBUTE_TYPES:
        program.answer_if(IF_EQUAL, letter, ERRNO | ENOTTY)
    program.answer(ALLOW)


def _refuse_connections(program: _Program) -> None:
    """Only the broker connects, and no socket listens."""
    program.answer_if(IF_EQUAL, NUMBERS["connect"], ASK_BROKER)
    program.answer_if(IF_EQUAL, NUMBERS["listen"], ERRNO | EACCES)
    for name, flags in _SENDING.items():
        start = program.begin_call(NUMBERS[name])
        program.load_argument(flags)
        program.answer_if(IF_ANY_BIT, MSG_FASTOPEN, ERRNO | EACCES)
        program.answer(ALLOW)
        program.end_call(start)


def _refuse_sockets(program: _Program, families: tuple[int, ...], *, is_proxied: bool) -> None:
    """But for the given families, only the kernel's tables of routes and interfaces are asked."""
    program.load_argument(0)
    for family in families:
        start = program.begin_call(family)
        if is_proxied:
            _refuse_other_than_tcp(program)
        program.answer(ALLOW)
        program.end_call(start)
    program.instructions.append((IF_EQUAL, 0, 3, AF_NETLINK))
    program.load_argument(2)
    program.answer_if(IF_EQUAL, NETLINK_ROUTE, ALLOW)
    program.answer(ERRNO | EACCES)


def _refuse_other_than_tcp(program: _Program) -> None:
    program.load_argument(1)
    program.compute(AND, SOCK_TYPE_MASK)
    program.instructions.append((IF_EQUAL, 1, 0, SOCK_STREAM))
    program.answer(ERRNO | EACCES)
    program.load_argument(2)
    program.answer_if(IF_EQUAL, 0, ALLOW)
    program.instructions.append((IF_EQUAL, 1, 0, IPPROTO_TCP))
    program.answer(ERRNO | EACCES)


def _refuse_datagram_pairs(program: _Program) -> None:
    """One end of a datagram pair (to which a raw one is equal) can be aimed at any named socket."""
    program.load_argument(0)
    program.instructions.append((IF_EQUAL, 1, 0, AF_UNIX))
    program.answer(ERRNO | EAFNOSUPPORT)
    program.load_argument(1)
    program.compute(AND, SOCK_TYPE_MASK)
    for kind in (SOCK_STREAM, SOCK_SEQPACKET):
        program.answer_if(IF_EQUAL, kind, ALLOW)
    program.answer(ERRNO | EACCES)
