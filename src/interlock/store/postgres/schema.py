"""The tables of the PostgreSQL store, and the migrations from older ones. Forward only."""

from functools import partial

from interlock.core.session.run_head import RunHead
from interlock.store.failures import StoreUnusable, unfinished_copy
from interlock.store.fulltext import to_tsvector
from interlock.store.index_rows import rebuild_indexes, words_of
from interlock.store.postgres.database import PostgresDatabase
from interlock.store.postgres.failures import TableMissing, missing_grant

_LOCK = 0x494C4B31  # "ILK1": one migration at a time in a database

# One entry for each schema version that ever existed; an entry never changes once released.
# "C": ids are compared as bytes, so that equal prefixes stand together in every locale.
MIGRATIONS = (
    """
    -- One row. Who changes it is the only one to write until its transaction has ended: so a
    -- position is seen only after all lower ones, and whoever remembers one misses nothing.
    CREATE TABLE latest (position bigint NOT NULL) WITH (fillfactor = 10);
    INSERT INTO latest VALUES (0);
    CREATE TABLE stream (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        session text COLLATE "C" NOT NULL UNIQUE,
        version bigint NOT NULL,
        digest bytea NOT NULL,
        head bytea NOT NULL
    ) WITH (fillfactor = 80);
    -- The position of the newest event of each stream.
    CREATE TABLE change (
        stream bigint PRIMARY KEY,
        position bigint NOT NULL
    );
    CREATE INDEX change_position ON change (position);
    -- `key` may be taken once in a stream.
    CREATE TABLE event (
        stream bigint NOT NULL,
        seq bigint NOT NULL,
        key text COLLATE "C" NOT NULL,
        body bytea NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (stream, seq)
    );
    CREATE UNIQUE INDEX event_key ON event (stream, key);
    -- From a token's node to its event. Node ids are unique in the whole store.
    CREATE TABLE node (
        id bytea PRIMARY KEY,
        stream bigint NOT NULL,
        seq bigint NOT NULL,
        kind text NOT NULL,
        parent bytea
    );
    CREATE INDEX node_stream ON node (stream);
    CREATE INDEX node_parent ON node (parent, kind, seq) WHERE parent IS NOT NULL;
    -- Calls without a token: the same one again is answered with what the first one made.
    CREATE TABLE request (
        key bytea PRIMARY KEY,
        arguments bytea NOT NULL,
        node bytea NOT NULL,
        at_ms bigint NOT NULL
    );
    CREATE INDEX request_node ON request (node);
    -- `content` is deflated; `hash` is over what comes out.
    CREATE TABLE blob (hash bytea PRIMARY KEY, content bytea NOT NULL);
    ALTER TABLE blob ALTER content SET STORAGE EXTERNAL;
    -- Which streams need a blob. The reference keeps a blob from being removed with one session
    -- just when another one begins to name it.
    CREATE TABLE blob_use (
        stream bigint NOT NULL,
        hash bytea NOT NULL REFERENCES blob,
        PRIMARY KEY (stream, hash)
    );
    CREATE INDEX blob_use_hash ON blob_use (hash);
    -- What `session list` and resume search look through: a row for each run, folded from the head.
    CREATE TABLE resume (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run text COLLATE "C" NOT NULL UNIQUE,
        stream bigint NOT NULL,
        updated_ms bigint NOT NULL,
        title text NOT NULL,
        workflow text NOT NULL,
        status text NOT NULL,
        step text NOT NULL,
        steps_done bigint NOT NULL,
        step_count bigint NOT NULL,
        recap text NOT NULL,
        workspace text COLLATE "C" NOT NULL,
        tip text NOT NULL,
        git_branch text,
        git_head text,
        is_archived boolean NOT NULL,
        approvals bigint NOT NULL,
        words tsvector NOT NULL
    );
    CREATE INDEX resume_stream ON resume (stream);
    CREATE INDEX resume_newest ON resume (is_archived, updated_ms);
    CREATE INDEX resume_branch ON resume (git_branch, updated_ms);
    CREATE INDEX resume_head ON resume (git_head, updated_ms);
    CREATE INDEX resume_approvals ON resume (updated_ms) WHERE approvals > 0;
    CREATE INDEX resume_words ON resume USING gin (words);
    -- Sessions that a gate watches over: by their directory, and by the client's conversation.
    CREATE TABLE attended (
        stream bigint PRIMARY KEY,
        workspace text COLLATE "C" NOT NULL,
        status text NOT NULL,
        updated_ms bigint NOT NULL,
        is_archived boolean NOT NULL
    );
    CREATE INDEX attended_workspace ON attended (workspace, status, updated_ms);
    CREATE TABLE host_session (
        host text NOT NULL,
        id text NOT NULL,
        stream bigint NOT NULL,
        PRIMARY KEY (host, id)
    );
    CREATE INDEX host_session_stream ON host_session (stream);
    -- What signs the tokens. Whoever can read this table can sign.
    CREATE TABLE token_key (
        id bigint PRIMARY KEY,
        secret bytea NOT NULL,
        state text NOT NULL CHECK (state IN ('current', 'retired', 'revoked')),
        made bigint GENERATED ALWAYS AS IDENTITY
    );
    CREATE UNIQUE INDEX token_key_current ON token_key (state) WHERE state = 'current';
    -- One row: how often the keys were changed.
    CREATE TABLE token_key_version (version bigint NOT NULL);
    INSERT INTO token_key_version VALUES (0);
    """,
    "ALTER TABLE resume ADD COLUMN steps_skipped bigint NOT NULL DEFAULT 0;",
    """
    CREATE VIEW keyed_event AS SELECT stream, key, body FROM event;
    -- A row for each run: its head, and what runs are looked for by. `waiting` counts what waits
    -- for the user. No column of an index changes with each advance, so updates stay in the page.
    CREATE TABLE run (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run text COLLATE "C" NOT NULL UNIQUE,
        stream bigint NOT NULL,
        head bytea NOT NULL,
        workflow text NOT NULL,
        updated_ms bigint NOT NULL,
        git_branch text,
        git_head text,
        waiting bigint NOT NULL,
        gaps_open bigint NOT NULL
    ) WITH (fillfactor = 60);
    CREATE INDEX run_stream ON run (stream, id);
    CREATE INDEX run_workflow ON run (workflow, stream);
    CREATE INDEX run_branch ON run (git_branch, id) WHERE git_branch IS NOT NULL;
    CREATE INDEX run_commit ON run (git_head, id) WHERE git_head IS NOT NULL;
    CREATE INDEX run_waiting ON run (id) WHERE waiting > 0;
    CREATE INDEX run_gaps ON run (stream) WHERE gaps_open > 0;
    CREATE TABLE run_words (run bigint PRIMARY KEY, words tsvector NOT NULL);
    CREATE INDEX run_words_words ON run_words USING gin (words);
    -- The streams of projects, and their rows: facts as they stand, by what they are about.
    CREATE TABLE project (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,
        version bigint NOT NULL,
        digest bytea NOT NULL
    );
    CREATE TABLE project_entry (
        project bigint NOT NULL,
        seq bigint NOT NULL,
        key text COLLATE "C" NOT NULL,
        body bytea NOT NULL,
        digest bytea NOT NULL,
        PRIMARY KEY (project, seq)
    );
    CREATE UNIQUE INDEX project_entry_key ON project_entry (project, key);
    CREATE TABLE project_row (
        project bigint NOT NULL,
        kind text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        seq bigint NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (project, kind, key)
    );
    CREATE INDEX project_row_newest ON project_row (project, kind, seq);
    CREATE TABLE lease (
        name text COLLATE "C" PRIMARY KEY,
        holder text NOT NULL,
        epoch bigint NOT NULL,
        renewed_ms bigint NOT NULL,
        until_ms bigint NOT NULL
    ) WITH (fillfactor = 50);
    -- Work for whoever runs jobs.
    CREATE TABLE outbox (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key text COLLATE "C" NOT NULL UNIQUE,
        topic text NOT NULL,
        content bytea NOT NULL,
        at_ms bigint NOT NULL
    );
    ALTER TABLE node ADD COLUMN run bigint NOT NULL DEFAULT 0;
    ALTER TABLE stream ADD COLUMN workspace text COLLATE "C" NOT NULL DEFAULT '';
    ALTER TABLE stream ADD COLUMN updated_ms bigint NOT NULL DEFAULT 0;
    ALTER TABLE stream ADD COLUMN is_archived boolean NOT NULL DEFAULT false;
    ALTER TABLE stream ADD COLUMN status text NOT NULL DEFAULT '';
    ALTER TABLE stream ADD COLUMN attended text;
    CREATE INDEX stream_newest ON stream (is_archived, updated_ms, id);
    CREATE INDEX stream_attended ON stream (workspace) WHERE attended IS NOT NULL;
    DROP TABLE resume;
    DROP TABLE attended;
    """,
    """
    -- `waiting` counts the session's own approvals that nobody has answered; those of its runs are
    -- counted there. Answers to approvals are found by their ids alone.
    ALTER TABLE stream ADD COLUMN waiting bigint NOT NULL DEFAULT 0;
    CREATE INDEX stream_waiting ON stream (id) WHERE waiting > 0;
    CREATE INDEX event_answers ON event (key)
        WHERE key >= 'approval-resolved:' AND key < 'approval-resolved;';
    """,
    """
    -- `unattended` is the time at which work was asked for that is done without a person, until it
    -- is over.
    ALTER TABLE stream ADD COLUMN unattended bigint NOT NULL DEFAULT 0;
    CREATE INDEX stream_unattended ON stream (unattended, id) WHERE unattended > 0;
    """,
    # No table changes: sessions may have plans, tasks, subagents and waived requirements from here
    # on, and an older Interlock cannot read these events.
    "",
)
VERSION = len(MIGRATIONS)
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
IS_KNOWN = "(SELECT schema_version FROM interlock_store) <= %(schema_known)s"
"""In each append: another process may have brought the store forward since this one opened it."""
RUNS_SINCE = 3  # before, the heads of runs were parts of the head of their session


def check(db: PostgresDatabase, *, may_be_unfinished: bool = False) -> int:
    """Return the schema version of the store, which must be one that this Interlock can read.

    0 means that the store has not been made yet.
    """
    try:
        row = db.row("SELECT schema_version, is_unfinished FROM interlock_store")
    except TableMissing:
        _require_empty_schema(db)
        return 0
    assert row is not None, "it is made with its one row"
    version, is_unfinished = row
    if is_unfinished and not may_be_unfinished:
        raise unfinished_copy(db.at.name)
    if version > VERSION:
        raise StoreUnusable(
            f"`{db.at.name}` was written by a newer Interlock"
            f" (its schema is {version}, this one knows {VERSION})",
            "Upgrade Interlock, and restart what still runs the older one. Nothing was changed.",
        )
    return version


def _require_empty_schema(db: PostgresDatabase) -> None:
    """Raise if there are tables where a store is to be made, or one that we may not use."""
    tables = [name for (name,) in db.rows(_TABLES, (db.at.schema,))]
    if tables and not db.scalar("SELECT has_schema_privilege(?, 'USAGE')", (db.at.schema,)):
        raise missing_grant(f"permission denied for schema {db.at.schema}", db.at)
    if not tables or "interlock_store" in tables:
        return  # another process has made it since we looked
    raise StoreUnusable(
        f"The schema `{db.at.schema}` in `{db.at.name}` is not an Interlock store",
        "Name another schema in the store's URL: ?options=-csearch_path%3Dname",
    )


def migrate(db: PostgresDatabase, *, may_be_unfinished: bool = False) -> None:
    """Bring the store to `VERSION` if it is older. Several processes may try at once."""
    if check(db, may_be_unfinished=may_be_unfinished) == VERSION:
        return
    db.begin()
    try:
        db.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        if db.scalar("SELECT to_regnamespace(?)", (db.at.schema,)) is None:
            db.run(f"CREATE SCHEMA {db.at.quoted_schema}")
        # Again: another process may have been here first.
        is_made = db.scalar("SELECT to_regclass('interlock_store')") is not None
        version = check(db, may_be_unfinished=may_be_unfinished) if is_made else 0
        if not is_made:
            db.run(
                "CREATE TABLE interlock_store (schema_version integer NOT NULL,"
                " is_unfinished boolean NOT NULL DEFAULT false)"
            )
            db.run("INSERT INTO interlock_store VALUES (0)")
        for number in range(version, VERSION):
            for statement in MIGRATIONS[number].split(";\n"):
                if statement.strip():
                    db.run(statement)
        if 0 < version < RUNS_SINCE:
            rebuild_indexes(db, partial(_index_words, db))
        db.run("UPDATE interlock_store SET schema_version = ?", (VERSION,))
        db.commit()
    except BaseException:
        db.rollback()
        raise


def _index_words(db: PostgresDatabase, run_id: int, run: RunHead) -> None:
    db.run(
        "INSERT INTO run_words (run, words) VALUES (?, ?::tsvector)",
        (run_id, to_tsvector(words_of(run))),
    )
