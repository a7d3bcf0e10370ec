"""Attempts to change something from inside, as Python that raises OSError where it is refused.

Each is run in a process of its own. `outside` is a directory of ours with the files `witness` and
`sub/inner`; `victim` is a process of ours; `call` makes a raw system call and raises on an error;
`address` names the daemons.
"""

PRELUDE = """
import ctypes, fcntl, mmap, os, shutil, signal, socket, struct, sys
outside, victim, numbers, address = ARGUMENTS
witness = outside + "/witness"
library = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    values = [ctypes.c_long(x) if isinstance(x, int) else x for x in arguments]
    if library.syscall(ctypes.c_long(numbers[name]), *values) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

def read_memory(process):
    buffer = ctypes.create_string_buffer(16)
    ours = struct.pack("QQ", ctypes.addressof(buffer), 16)
    try:
        call("process_vm_readv", process, ours, 1, struct.pack("QQ", 4096, 16), 1, 0)
    except OSError as error:
        if error.errno != 14:  # it may, and there is nothing
            raise

def connect(family, target, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.connect(target)
        one.sendall(b"hello")
"""

FILES = {
    "open for writing": "open(witness, 'w')",
    "open for appending": "open(witness, 'a')",
    "open for both": "open(witness, 'r+')",
    "create": "open(outside + '/new', 'x')",
    "create without a name": "os.open(outside, os.O_TMPFILE | os.O_WRONLY)",
    "truncate while reading": "os.open(witness, os.O_RDONLY | os.O_TRUNC)",
    "truncate by name": "os.truncate(witness, 0)",
    "remove": "os.unlink(witness)",
    "remove a directory": "shutil.rmtree(outside + '/sub')",
    "make a directory": "os.mkdir(outside + '/new')",
    "make a link": "os.symlink('/', outside + '/new')",
    "make a hard link beside it": "os.link(witness, outside + '/new')",
    "take a hard link inside": "os.link(witness, os.environ['TMPDIR'] + '/l')",
    "make a pipe": "os.mkfifo(outside + '/new')",
    "make a node": "os.mknod(outside + '/new')",
    "rename": "os.rename(witness, outside + '/new')",
    "move inside": "os.rename(witness, os.environ['TMPDIR'] + '/moved')",
    "move out": "open(os.environ['TMPDIR'] + '/x', 'w'); "
    "os.rename(os.environ['TMPDIR'] + '/x', outside + '/new')",
    "exchange": "open(os.environ['TMPDIR'] + '/x', 'w'); "
    "call('renameat2', -100, witness.encode(), -100, "
    "(os.environ['TMPDIR'] + '/x').encode(), 2)",
    "through a descriptor of a directory": "os.open('witness', os.O_WRONLY, "
    "dir_fd=os.open(outside, os.O_RDONLY))",
    "through /proc/self/fd": "open('/proc/self/fd/%d' % os.open(witness, os.O_RDONLY), 'w')",
    "through /proc/self/root": "open('/proc/self/root' + witness, 'w')",
    "through /proc/self/cwd": "os.chdir(outside); open('/proc/self/cwd/witness', 'w')",
    "through another process": "open('/proc/%d/root' % victim + witness, 'w')",
    "through a link of its own": "os.symlink(witness, os.environ['TMPDIR'] + '/s'); "
    "open(os.environ['TMPDIR'] + '/s', 'w')",
    "by a shared mapping": "mmap.mmap(os.open(witness, os.O_RDWR), 1)",
    "by a handle": "call('open_by_handle_at', -100, b'\\0' * 64, os.O_WRONLY)",
    "by openat2": "how = struct.pack('QQQ', os.O_WRONLY, 0, 0); "
    "call('openat2', -100, witness.encode(), how, 24)",
}
METADATA = {
    "chmod": "os.chmod(witness, 0o777)",
    "fchmod": "os.fchmod(os.open(witness, os.O_RDONLY), 0o777)",
    "chmod by /proc": "os.chmod('/proc/self/fd/%d' % os.open(witness, os.O_RDONLY), 0o777)",
    "fchmodat2": "call('fchmodat2', -100, witness.encode(), 0o777, 0)",
    "fchmodat2 of a descriptor": "file = os.open(witness, os.O_PATH); "
    "call('fchmodat2', file, b'', 0o777, 0x1000)",
    "chmod of a directory": "os.chmod(outside, 0o777)",
    "chmod through a link": "os.symlink(witness, os.environ['TMPDIR'] + '/t'); "
    "os.chmod(os.environ['TMPDIR'] + '/t', 0o777)",
    "chmod through a way back": "os.chmod(os.environ['TMPDIR'] + '/../../outside/witness', 0o777)",
    "chmod from a directory": "os.chdir(outside); os.chmod('witness', 0o777)",
    "chown": "os.chown(witness, 1, 1)",
    "chown to itself": "os.chown(witness, os.getuid(), os.getgid())",
    "lchown": "os.lchown(witness, 1, 1)",
    "fchown": "os.fchown(os.open(witness, os.O_RDONLY), 1, 1)",
    "utime": "os.utime(witness, (1, 1))",
    "utime to now": "os.utime(witness)",
    "utime of a descriptor": "os.utime(os.open(witness, os.O_RDONLY), (1, 1))",
    "utime of a link": "os.utime(outside + '/link', (1, 1), follow_symlinks=False)",
    "old utime": "call('utime', witness.encode(), None)",
    "old utimes": "call('utimes', witness.encode(), None)",
    "futimesat": "call('futimesat', -100, witness.encode(), None)",
    "setxattr": "os.setxattr(witness, 'user.x', b'1')",
    "setxattrat": "call('setxattrat', -100, witness.encode(), 0, b'user.x', b'\\0' * 16, 16)",
    "removexattr": "os.removexattr(witness, 'user.present')",
    "an access list": "os.setxattr(witness, 'system.posix_acl_access', b'\\2\\0\\0\\0')",
    "attributes by ioctl": "fcntl.ioctl(os.open(witness, os.O_RDONLY), 0x40086602, b'\\0' * 8)",
    "attributes by call": "call('file_setattr', -100, witness.encode(), b'\\0' * 24, 24, 0)",
}
PROCESSES = {
    "signal": "os.kill(victim, 0)",
    "end": "os.kill(victim, signal.SIGKILL)",
    "signal by a descriptor": "signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGKILL)",
    "trace": "call('ptrace', 16, victim, 0, 0)",
    "read memory": "read_memory(victim)",
    "write memory": "open('/proc/%d/mem' % victim, 'r+b')",
    "take a descriptor": "call('pidfd_getfd', os.pidfd_open(victim), 0, 0)",
    "limits": "call('prlimit64', victim, 7, struct.pack('QQ', 10, 10), None)",
    "priority": "os.setpriority(os.PRIO_PROCESS, victim, 19)",
    "priority of a user's": "os.setpriority(os.PRIO_USER, 0, 19)",
    "priority of a group": "os.setpriority(os.PRIO_PGRP, os.getpgid(victim), 19)",
    "priority of its files": "call('ioprio_set', 3, 0, 3 << 13)",
    "processor": "os.sched_setaffinity(victim, {0})",
    "schedule": "call('sched_setattr', victim, struct.pack('IIQiI', 24, 3, 0, 0, 0), 0)",
    "advice on memory": "call('process_madvise', os.pidfd_open(victim), None, 0, 21, 0)",
    "pages of memory": "call('move_pages', victim, 0, None, None, None, 0)",
    "be killed last": "open('/proc/%d/oom_score_adj' % victim, 'w').write('1000')",
    "a name": "open('/proc/%d/comm' % victim, 'w').write('x')",
    "a namespace of another": "call('setns', os.open('/proc/%d/ns/mnt' % victim, 0), 0)",
}
KERNEL = {
    "a user namespace": "call('unshare', 0x10000000)",
    "a mount namespace": "call('unshare', 0x20000)",
    "a namespace by clone": "call('clone', 0x10000000 | 17, 0, 0, 0, 0)",
    "a mount": "call('mount', b'none', outside.encode(), b'tmpfs', 0, None)",
    "a new mount": "call('fsopen', b'tmpfs', 0)",
    "a copy of the tree": "call('open_tree', -100, b'/', 1)",
    "mount attributes": "call('mount_setattr', -100, b'/', 0, b'\\0' * 32, 32)",
    "another root": "os.chroot(outside)",
    "the events of others": "call('perf_event_open', b'\\0' * 112, victim, -1, -1, 0)",
    "faults of memory": "call('userfaultfd', 0)",
    "io_uring": "call('io_uring_setup', 1, b'\\0' * 120)",
    "a key": "call('add_key', b'user', b'x', b'y', 1, -3)",
    "a key ring": "call('keyctl', 0, -3, 0)",
    "a program in the kernel": "call('bpf', 0, b'\\0' * 64, 64)",
    "shared memory": "call('shmget', 0x1234, 4096, 0o1666)",
    "a semaphore": "call('semget', 0x1234, 1, 0o1666)",
    "a message queue": "call('msgget', 0x1234, 0o1666)",
    "a named queue": "call('mq_open', b'interlock', os.O_CREAT | os.O_RDWR, 0o600, None)",
    "the clock": "call('clock_settime', 0, struct.pack('qq', 0, 0))",
    "the host's name": "call('sethostname', b'x', 1)",
    "a setting of the kernel": "open('/proc/sys/kernel/hostname', 'w').write('x')",
    "keys typed on a terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x')",
    "a call of the future": "call('the future')",
    "a call of x32": "call('x32')",
}
NETWORK = {
    "TCP": "connect(socket.AF_INET, ('127.0.0.1', address['tcp']))",
    "TCP by IPv6": "connect(socket.AF_INET6, ('::1', address['tcp6']))",
    "UDP": "connect(socket.AF_INET, ('127.0.0.1', address['tcp']), socket.SOCK_DGRAM)",
    "TCP with the first bytes": "socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', "
    "address['tcp']))",
    "TCP with the first bytes of a message": "socket.socket().sendmsg([b'x'], [], 0x20000000, "
    "('127.0.0.1', address['tcp']))",
    "MPTCP": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
    "raw packets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a virtual machine": "socket.socket(40, socket.SOCK_STREAM)",
    "cryptography of the kernel": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "audit": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)",
    "a socket by name": "connect(socket.AF_UNIX, address['unix'])",
    "a socket without a file": "connect(socket.AF_UNIX, address['abstract'])",
    # Their ends could be aimed at any daemon that takes datagrams.
    "a pair of datagram sockets": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "a pair of raw sockets": "socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)",
    "listening": "socket.create_server(('127.0.0.1', 0))",
}
GROUPS = {
    "files": FILES,
    "metadata": METADATA,
    "processes": PROCESSES,
    "kernel": KERNEL,
    "network": NETWORK,
}
ATTEMPTS = {
    f"{group}: {name}": code for group, table in GROUPS.items() for name, code in table.items()
}
