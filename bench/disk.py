"""What one advance costs the disk: syncs and bytes, counted where SQLite asks for them."""
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownArgumentType=false
# pyright: reportIncompatibleMethodOverride=false, reportUnknownVariableType=false

from collections import Counter
from pathlib import Path

import apsw

from bench.runs import advance_in, begin, prepared
from interlock.app.context import open_app

COUNTED: Counter[str] = Counter()


class _CountingFile(apsw.VFSFile):
    def __init__(self, vfs: str, name, flags) -> None:
        kind = flags[0]
        self._kind = "wal" if kind & apsw.SQLITE_OPEN_WAL else "db"
        super().__init__(vfs, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 (apsw's name)
        COUNTED[f"{self._kind} syncs"] += 1
        super().xSync(flags)

    def xWrite(self, data, offset: int) -> None:  # noqa: N802 (apsw's name)
        COUNTED[f"{self._kind} bytes"] += len(data)
        super().xWrite(data, offset)


class _CountingVfs(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("counting", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 (apsw's name)
        return _CountingFile("unix", name, flags)


def cost_of_advances(home: Path, workspace: Path, *, count: int) -> list[str]:
    """Advances with notes of 500 bytes, on a store of their own."""
    vfs = _CountingVfs()
    app = open_app(home)
    prepared(workspace, steps=count + 1)
    answered = begin(app, workspace)
    size_before = app.reader.stats().size
    COUNTED.clear()
    for number in range(count):
        answered = advance_in(app, answered, number)
    counted = dict(COUNTED)
    app.close()  # the last connection folds the WAL back into the file
    size = (home / "interlock.db").stat().st_size
    vfs.unregister()
    return [
        f"syncs per advance: {counted['wal syncs'] / count:.3f} of the WAL,"
        f" {counted.get('db syncs', 0) / count:.3f} of checkpoints",
        f"bytes per advance: {(size - size_before) / count:.0f} kept,"
        f" {counted['wal bytes'] / count:.0f} written to the WAL",
    ]
