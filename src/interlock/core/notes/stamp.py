"""The stamp of a file, and for how long after a change it says nothing about the content."""

import msgspec

GRACE_NS = 2_000_000_000
"""A file that was changed this shortly before it was read may have been changed again since, with
the same size and within the same tick of its file system's clock. FAT counts in steps of two
seconds, some network disks in one, Linux in four to ten milliseconds; the longest is taken, because
the price is only that a new file is read a second time."""


class FileStamp(msgspec.Struct, frozen=True):
    mtime_ns: int
    ctime_ns: int
    size: int
    ino: int

    @property
    def modified_ms(self) -> int:
        return self.mtime_ns // 1_000_000

    def is_racy(self, now_ms: int) -> bool:
        """Whether the content may change without the stamp; `now_ms` is no later than the reading.

        People set `mtime` as they like, so `ctime` counts as well. A time in the future comes from
        another clock, and is of no more use.
        """
        return max(self.mtime_ns, self.ctime_ns) > now_ms * 1_000_000 - GRACE_NS
