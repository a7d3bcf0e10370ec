"""The tables of the SQLite store, and the migrations from older files. Forward only."""

from interlock.store.failures import StoreUnusable, unfinished_copy
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
)
VERSION = len(MIGRATIONS)


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
    if version > VERSION:
        raise StoreUnusable(
            f"`{db.path}` was written by a newer Interlock"
            f" (its schema is {version}, this one knows {VERSION})",
            "Upgrade Interlock. Nothing was changed.",
        )
    return version


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
    db.run(f"PRAGMA user_version = {VERSION}")
    if version == 0:
        db.run(f"PRAGMA application_id = {APPLICATION_ID}")
    db.run("COMMIT")
