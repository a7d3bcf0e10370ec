"""A home and two projects with notes of every kind: linked, typed, odd, hostile.

Beside them a server over them, for the tests that import it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from interlock.app.context import open_app
from interlock.core.ids import SessionId
from tests.server.flows import started
from tests.server.server_process import Server
from tests.server.site_server import SiteServer
from tests.server.stage import HOSTILE

NOTES: dict[str, str] = {
    "decisions/ADR-001-use-sqlite.md": """\
---
title: Use SQLite
type: decision
status: accepted
tags: [storage, sqlite]
permalink: decisions/use-sqlite
session: {session}
node: {node}
reviewed:
  by: Ada
  round: 2
---
# Use SQLite

One file on a local disk is enough for what one machine writes. See [[The event log]] and
[[Backups|how it is kept]], and `[[not a link]]`.

## Why

| asked | answer |
|---|---|
| Is it fast? | yes, see [[Benchmarks\\|the figures]] |

- [decision] One file for each data home #storage (measured)
- [risk] Network disks do not lock #sqlite
- implements [[The event log]]
- contradicts [[Use PostgreSQL]] (for one machine)
""",
    "design/event-log.md": """\
---
title: The event log
type: design
status: draft
tags: [storage]
---
An append-only log. Each event has a digest over the one before.

- [fact] A head is a fold of the events #storage
- relates_to [[Use SQLite]]
""",
    "design/benchmarks.md": """\
---
title: Benchmarks
type: analysis
status: done
---
Figures for [[Use SQLite]]: an advance takes 3 ms.
""",
    "tasks/TASK-001-write-the-guide.md": """\
---
title: Write the guide
type: task
status: blocked
---
Waits for [[The event log]].

- depends_on [[Use SQLite]]
""",
    "журнал.md": "Заметка без заголовка: почему выбран журнал событий.\n",
    "hostile.md": f"""\
---
title: "<b>{HOSTILE[:40]}"
type: "<i>type"
tags: ["<img src=x onerror=window.pwned=1>"]
session: "../../settings"
evil: "<script>window.pwned=1</script>"
---
{HOSTILE}

<div onclick="window.pwned=1">div</div>

[[<img src=x onerror=window.pwned=1>]] and [[javascript:window.pwned=1]]

- "<script>kind" [[Use SQLite]] (<svg onload=window.pwned=1>)
- [<b>category] {HOSTILE} #tag
""",
    "broken-front.md": "---\ntitle: [never closed\n---\nThe body of a broken one.\n",
    "long.md": "# Long\n\n" + "\n\n".join(f"Paragraph {n} with some words." for n in range(6_000)),
}
ELSEWHERE = "---\ntitle: The price list\n---\nA secret of the other project: [[Use SQLite]].\n"


class Vault:
    """Where everything lies."""

    def __init__(self, root: Path) -> None:
        self.home, self.shop, self.site = root / "home", root / "shop", root / "site"
        self.unknown, self.empty = root / "unknown", root / "empty"
        self.session = self.run = self.node = ""

    @property
    def notes(self) -> Path:
        return self.shop / ".interlock" / "notes"

    def write(self, path: str, text: str, *, project: Path | None = None) -> Path:
        file = (project or self.shop) / ".interlock" / "notes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def fill(self) -> None:
        for project in (self.shop, self.site, self.unknown, self.empty):
            (project / ".git").mkdir(parents=True)
        app = open_app(self.home)
        for project in (self.empty, self.site, self.shop):
            self.session = started(app, "hello", f"Goal in {project.name}", project)
        run = app.reader.runs(SessionId(self.session))[-1]
        self.run, self.node = run.run, run.tip or ""
        app.close()
        for path, text in NOTES.items():
            filled = text.replace("{session}", self.session).replace("{node}", self.node)
            self.write(path, filled)
        self.write("prices.md", ELSEWHERE, project=self.site)
        self.write("hidden.md", "Nobody worked here.\n", project=self.unknown)
        (self.notes / "latin.md").write_bytes(
            b"---\ntitle: Caf\xe9\n---\nA caf\xe9 with [[caf\xe9]].\n"
        )
        (self.notes / "binary.md").write_bytes(b"\0\1\2 not text")
        now = self.notes / "decisions" / "ADR-001-use-sqlite.md"
        for age, path in enumerate(sorted(self.notes.rglob("*.md")), 1):
            at = now.stat().st_mtime - age * 3_600
            os.utime(path, (at, at))

    def at(self, path: str = "", *, project: Path | str | None = None, **more: str) -> str:
        """The page of a note, or the list."""
        where = {"in": str(project or self.shop), **({"path": path} if path else {}), **more}
        return f"/notes{'/note' if path else ''}?{urlencode(where)}"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    found = Vault(tmp_path_factory.mktemp("vault"))
    found.fill()
    return found


@pytest.fixture(scope="module")
def server(vault: Vault) -> Iterator[Server]:
    with SiteServer(vault.home) as running:
        yield running
