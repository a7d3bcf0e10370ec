"""System calls by name, and the groups of them that the sandbox refuses.

Landlock decides about paths when a file is opened, created, removed, renamed or truncated. The
groups here are what it does not see: metadata, sockets, other processes, and ways into the kernel
around it. Mounts, clocks, modules and the like need capabilities, which nobody inside has.
"""

import os

MACHINE = os.uname().machine
IS_SUPPORTED = os.uname().sysname == "Linux" and MACHINE in ("x86_64", "aarch64")
AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}.get(MACHINE, 0)
NEWEST = 469
"""The newest call that this table was made for; a newer kernel's calls are refused unseen."""

# The name, then its number on x86_64 and on aarch64 (`-`: it has none there).
_TABLE = """
open 2 -            openat 257 56        openat2 437 437      creat 85 -
chmod 90 -          fchmod 91 52         fchmodat 268 53      fchmodat2 452 452
chown 92 -          fchown 93 55         lchown 94 -          fchownat 260 54
utime 132 -         utimes 235 -         futimesat 261 -      utimensat 280 88
setxattr 188 5      lsetxattr 189 6      fsetxattr 190 7      setxattrat 463 463
removexattr 197 14  lremovexattr 198 15  fremovexattr 199 16  removexattrat 466 466
file_setattr 469 469
ioctl 16 29         clone 56 220         clone3 435 435       prctl 157 167
socket 41 198       socketpair 53 199    capset 126 91        close_range 436 436
connect 42 203      listen 50 201        sendto 44 206        sendmsg 46 211
sendmmsg 307 269
prlimit64 302 261   setpriority 141 140  ioprio_set 251 30    sched_setaffinity 203 122
sched_setparam 142 118                   sched_setscheduler 144 119
sched_setattr 314 274
ptrace 101 117      process_vm_readv 310 270                  pidfd_getfd 438 438
process_madvise 440 440
move_pages 279 239  migrate_pages 256 238
unshare 272 97      setns 308 268
add_key 248 217     request_key 249 218  keyctl 250 219
bpf 321 280         perf_event_open 298 241                   userfaultfd 323 282
io_uring_setup 425 425                   io_uring_enter 426 426
io_uring_register 427 427                open_by_handle_at 304 265
mq_open 240 180     mq_unlink 241 181    shmget 29 194        shmat 30 196
shmctl 31 195       semget 64 190        semop 65 193         semtimedop 220 192
semctl 66 191       msgget 68 186        msgsnd 69 189        msgrcv 70 188
msgctl 71 187
landlock_create_ruleset 444 444          landlock_add_rule 445 445
landlock_restrict_self 446 446           seccomp 317 277
"""
_CELLS = _TABLE.split()
_COLUMN = 1 if MACHINE == "x86_64" else 2
NUMBERS = {
    _CELLS[index]: int(_CELLS[index + _COLUMN])
    for index in range(0, len(_CELLS), 3)
    if _CELLS[index + _COLUMN] != "-"
}
"""The numbers of the calls that this machine has."""


def numbers_of(names: str) -> list[int]:
    return [NUMBERS[name] for name in names.split() if name in NUMBERS]


METADATA = numbers_of(
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat"
)
"""Calls that change modes, owners and times, of which Landlock has no rules."""
ATTRIBUTES = numbers_of(
    "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat"
    " file_setattr"
)
"""Calls that set attributes, which many file systems do not have: programs do without."""
FORBIDDEN = numbers_of(
    # other processes; that these are not traced or read, Landlock sees to
    "process_madvise move_pages migrate_pages"
    # other views of the file system, around Landlock and with capabilities of their own
    " unshare setns open_by_handle_at"
    # the kernel
    " add_key request_key keyctl bpf perf_event_open userfaultfd"
    # memory and queues that others share
    " mq_open mq_unlink shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv"
    " msgctl"
)
HIDDEN = numbers_of("clone3 io_uring_setup io_uring_enter io_uring_register")
"""Calls that seem not to exist, so that programs fall back on others, which can be judged."""
FOR_ONESELF = numbers_of(
    "prlimit64 sched_setaffinity sched_setparam sched_setscheduler sched_setattr"
)
"""Calls whose first argument is a process: only 0, the caller itself, is allowed."""
FOR_ONESELF_BY_KIND = {NUMBERS["setpriority"]: 0, NUMBERS["ioprio_set"]: 1}
"""Calls whose first argument says what the second one is, each with the value for a process; others
mean a group, or all processes of a user."""
