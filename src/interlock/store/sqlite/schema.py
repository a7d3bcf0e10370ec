"""The tables of the SQLite store, and the migrations from older files. Forward only."""

from functools import partial

from interlock.core.session.run_head import RunHead
from interlock.store.failures import StoreUnusable, unfinished_copy
from interlock.store.index_rows import rebuild_indexes, words_of
from interlock.store.sqlite.database import SqliteDatabase

APPLICATION_ID = 0x494C4B31  # "ILK1": tells our files from anybody else's
UNFINISHED_ID = 0x494C4B30  # "ILK0": one of ours that is being copied to, so it is not a store yet

# One entry for each schema version that ever existed; an entry never changes once released.
MIGRATIONS = (
    """
    CREATE TABLE stream (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        digest BLOB NOT NULL,
        head BLOB NOT NULL
    ) STRICT;
    -- `position` orders all events of the store; within a session only `seq` counts.
    CREATE TABLE event (
        position INTEGER PRIMARY KEY,
        stream INTEGER NOT NULL REFERENCES stream (id),
        seq INTEGER NOT NULL,
        body BLOB NOT NULL,
        digest BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX event_place ON event (stream, seq);
    -- What may happen only once in a stream.
    CREATE TABLE event_key (
        stream INTEGER NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        PRIMARY KEY (stream, key)
    ) STRICT, WITHOUT ROWID;
    -- From a token's node to its event. Node ids are unique in the whole store.
    CREATE TABLE node (
        id BLOB PRIMARY KEY,
        stream INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        parent BLOB
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX node_parent ON node (parent, kind, seq) WHERE parent IS NOT NULL;
    -- Calls without a token: the same one again is answered with what the first one made.
    CREATE TABLE request (
        key BLOB PRIMARY KEY,
        arguments BLOB NOT NULL,
        node BLOB NOT NULL,
        at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- `content` is deflated; `hash` is over what comes out.
    CREATE TABLE blob (
        id INTEGER PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        content BLOB NOT NULL
    ) STRICT;
    -- What `session list` and resume search look through: a row for each run, folded from the head.
    CREATE TABLE resume (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE,
        stream INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        title TEXT NOT NULL,
        workflow TEXT NOT NULL,
        status TEXT NOT NULL,
        step TEXT NOT NULL,
        steps_done INTEGER NOT NULL,
        step_count INTEGER NOT NULL,
        recap TEXT NOT NULL,
        workspace TEXT NOT NULL,
        tip TEXT NOT NULL,
        git_branch TEXT,
        git_head TEXT,
        is_archived INTEGER NOT NULL,
        approvals INTEGER NOT NULL
    ) STRICT;
    -- Sessions that a gate watches over: by their directory, and by the client's conversation.
    CREATE TABLE attended (
        stream INTEGER PRIMARY KEY,
        workspace TEXT NOT NULL,
        status TEXT NOT NULL,
        updated_ms INTEGER NOT NULL,
        is_archived INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX attended_workspace ON attended (workspace, status, updated_ms);
    CREATE TABLE host_session (
        host TEXT NOT NULL,
        id TEXT NOT NULL,
        stream INTEGER NOT NULL,
        PRIMARY KEY (host, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX host_session_stream ON host_session (stream);
    CREATE INDEX resume_stream ON resume (stream);
    CREATE INDEX resume_newest ON resume (is_archived, updated_ms);
    CREATE INDEX resume_branch ON resume (git_branch, updated_ms);
    CREATE INDEX resume_approvals ON resume (updated_ms) WHERE approvals > 0;
    CREATE INDEX resume_head ON resume (git_head, updated_ms);
    CREATE VIRTUAL TABLE resume_words USING fts5 (
        title, recap, workflow, content = '', contentless_delete = 1, tokenize = 'unicode61'
    );
    """,
    "ALTER TABLE resume ADD COLUMN steps_skipped INTEGER NOT NULL DEFAULT 0;",
    """
    CREATE VIEW keyed_event AS SELECT k.stream, k.key, e.body
        FROM event_key k JOIN event e ON e.stream = k.stream AND e.seq = k.seq;
    -- A row for each run: its head, and what runs are looked for by. `waiting` counts what waits
    -- for the user. While `are_words_due`, the words of its head are not in `run_words` yet.
    CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        run TEXT NOT NULL UNIQUE,
        stream INTEGER NOT NULL,
        head BLOB NOT NULL,
        workflow TEXT NOT NULL,
        updated_ms INTEGER NOT NULL,
        git_branch TEXT,
        git_head TEXT,
        waiting INTEGER NOT NULL,
        gaps_open INTEGER NOT NULL,
        are_words_due INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX run_stream ON run (stream);
    CREATE INDEX run_workflow ON run (workflow, stream);
    CREATE INDEX run_branch ON run (git_branch) WHERE git_branch IS NOT NULL;
    CREATE INDEX run_commit ON run (git_head) WHERE git_head IS NOT NULL;
    CREATE INDEX run_waiting ON run (id) WHERE waiting > 0;
    CREATE INDEX run_gaps ON run (stream) WHERE gaps_open > 0;
    CREATE INDEX run_words_due ON run (id) WHERE are_words_due;
    CREATE VIRTUAL TABLE run_words USING fts5 (
        goal, recap, workflow, content = '', contentless_delete = 1, tokenize = 'unicode61'
    );
    -- The streams of projects, and their rows: facts as they stand, by what they are about.
    CREATE TABLE project (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        digest BLOB NOT NULL
    ) STRICT;
    CREATE TABLE project_entry (
        id INTEGER PRIMARY KEY,
        project INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL,
        digest BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX project_entry_place ON project_entry (project, seq);
    CREATE UNIQUE INDEX project_entry_key ON project_entry (project, key);
    CREATE TABLE project_row (
        project INTEGER NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (project, kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX project_row_newest ON project_row (project, kind, seq);
    CREATE TABLE lease (
        name TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        epoch INTEGER NOT NULL,
        renewed_ms INTEGER NOT NULL,
        until_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- Work for whoever runs jobs. AUTOINCREMENT: what was removed does not change the order.
    CREATE TABLE outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        topic TEXT NOT NULL,
        content BLOB NOT NULL,
        at_ms INTEGER NOT NULL
    ) STRICT;
    ALTER TABLE node ADD COLUMN run INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE stream ADD COLUMN workspace TEXT NOT NULL DEFAULT '';
    ALTER TABLE stream ADD COLUMN updated_ms INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE stream ADD COLUMN is_archived INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE stream ADD COLUMN status TEXT NOT NULL DEFAULT '';
    ALTER TABLE stream ADD COLUMN attended TEXT;
    CREATE INDEX stream_newest ON stream (is_archived, updated_ms);
    CREATE INDEX stream_attended ON stream (workspace) WHERE attended IS NOT NULL;
    DROP TABLE resume;
    DROP TABLE resume_words;
    DROP TABLE attended;
    """,
    """
    -- `waiting` counts the session's own approvals that nobody has answered; those of its runs are
    -- counted there. Answers to approvals are found by their ids alone.
    ALTER TABLE stream ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX stream_waiting ON stream (id) WHERE waiting > 0;
    CREATE INDEX event_key_answers ON event_key (key)
        WHERE key >= 'approval-resolved:' AND key < 'approval-resolved;';
    """,
    """
    -- `unattended` is the time at which work was asked for that is done without a person, until it
    -- is over.
    ALTER TABLE stream ADD COLUMN unattended INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX stream_unattended ON stream (unattended) WHERE unattended > 0;
    """,
    # No table changes: sessions may have plans, tasks, subagents and waived requirements from here
    # on, and an older Interlock cannot read these events.
    "",
)
VERSION = len(MIGRATIONS)
RUNS_SINCE = 3  # before, the heads of runs were parts of the head of their session


def check(db: SqliteDatabase, *, may_be_unfinished: bool = False) -> int:
    """Return the schema version of the file, which must be one that this Interlock can read."""
    version = db.scalar("PRAGMA user_version")
    is_empty = db.scalar("SELECT count(*) FROM sqlite_schema") == 0
    application_id = db.scalar("PRAGMA application_id")
    if application_id == UNFINISHED_ID and not may_be_unfinished:
        raise unfinished_copy(str(db.path))
    if not is_empty and application_id not in (APPLICATION_ID, UNFINISHED_ID):
        raise StoreUnusable(
            f"`{db.path}` is not an Interlock store",
            "Move that file away, or point INTERLOCK_HOME at another directory.",
        )
    check_version(db, version)
    return version


def check_version(db: SqliteDatabase, version: int) -> None:
    """Refuse a file of a newer schema, which another process may have brought forward."""
    if version > VERSION:
        raise StoreUnusable(
            f"`{db.path}` was written by a newer Interlock"
            f" (its schema is {version}, this one knows {VERSION})",
            "Upgrade Interlock, and restart what still runs the older one. Nothing was changed.",
        )


def set_unfinished(db: SqliteDatabase, *, is_unfinished: bool) -> None:
    db.run(f"PRAGMA application_id = {UNFINISHED_ID if is_unfinished else APPLICATION_ID}")


def migrate(db: SqliteDatabase, *, may_be_unfinished: bool = False) -> None:
    """Bring the file to `VERSION` if it is older. The caller holds the write lock."""
    version = check(db, may_be_unfinished=may_be_unfinished)
    if version == VERSION:
        return
    db.run("BEGIN IMMEDIATE")
    for number in range(version, VERSION):
        db.run(MIGRATIONS[number])
    if 0 < version < RUNS_SINCE:
        rebuild_indexes(db, partial(index_words, db))
    db.run(f"PRAGMA user_version = {VERSION}")
    if version == 0:
        db.run(f"PRAGMA application_id = {APPLICATION_ID}")
    db.run("COMMIT")


def index_words(db: SqliteDatabase, run_id: int, run: RunHead) -> None:
    """Index the words of a run, instead of those that it had before."""
    db.run("DELETE FROM run_words WHERE rowid = ?", (run_id,))
    db.run(
        "INSERT INTO run_words (rowid, goal, recap, workflow) VALUES (?, ?, ?, ?)",
        (run_id, *words_of(run)),
    )
