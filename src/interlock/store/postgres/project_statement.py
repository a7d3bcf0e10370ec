"""The statements that write an entry of a project, which are sent together.

The row of the project is locked first, so whoever comes next waits until we have committed, and the
statement that follows sees everything that was committed before: its conditions need no locks of
their own. If one of them does not hold there is no entry, and whoever divides by their number takes
everything back.
"""

from interlock.core.project_stream import GENESIS, ProjectPlan
from interlock.store.postgres.schema import IS_KNOWN, VERSION
from interlock.store.sql import Contents, Numbers, Texts, Value

_MAKE = (
    "INSERT INTO project (name, version, digest) VALUES (%(project)s, 0, %(genesis)s)"
    " ON CONFLICT (name) DO NOTHING"
)
_LOCK = "SELECT FROM project WHERE name = %(project)s FOR UPDATE"
_LOCK_LEASE = "SELECT FROM lease WHERE name = %(lease)s FOR SHARE"
HELD_LEASE = "SELECT FROM lease WHERE name = %(lease)s AND epoch = %(epoch)s"
_APPEND = f"""
WITH condition AS (
    SELECT * FROM unnest(%(condition_kinds)s, %(condition_keys)s, %(condition_seqs)s)
        c (kind, key, seq)
),
entry AS (
    INSERT INTO project_entry (project, seq, key, body, digest)
    SELECT p.id, p.version + 1, %(key)s, %(body)s, sha256(p.digest || %(body)s) FROM project p
    WHERE p.name = %(project)s AND {IS_KNOWN}
        AND (%(lease)s::text IS NULL OR EXISTS ({HELD_LEASE}))
        AND NOT EXISTS (
            SELECT FROM condition c LEFT JOIN project_row r
                ON r.project = p.id AND r.kind = c.kind AND r.key = c.key
            WHERE c.key IS NOT NULL AND coalesce(r.seq, 0) != c.seq)
        AND NOT EXISTS (
            SELECT FROM condition c JOIN project_row r ON r.project = p.id AND r.kind = c.kind
            WHERE c.key IS NULL AND r.seq > c.seq)
    ON CONFLICT (project, key) DO NOTHING RETURNING project, seq, digest
),
moved AS (
    UPDATE project SET version = entry.seq, digest = entry.digest FROM entry
    WHERE project.id = entry.project
),
written AS (
    INSERT INTO project_row (project, kind, key, seq, content)
    SELECT entry.project, w.kind, w.key, entry.seq, w.content
    FROM entry, unnest(%(kinds)s, %(keys)s, %(contents)s) w (kind, key, content)
    ON CONFLICT (project, kind, key) DO UPDATE SET seq = excluded.seq, content = excluded.content
),
removed AS (
    DELETE FROM project_row r USING entry, unnest(%(removed_kinds)s, %(removed_keys)s) d (kind, key)
    WHERE r.project = entry.project AND r.kind = d.kind AND r.key = d.key
),
messages AS (
    INSERT INTO outbox (key, topic, content, at_ms)
    SELECT m.*, %(at_ms)s
    FROM entry, unnest(%(message_keys)s, %(message_topics)s, %(message_contents)s) m
    ON CONFLICT (key) DO NOTHING RETURNING 1
)"""
_INSIST = " SELECT 1 / (SELECT count(*) FROM entry)"
# The last thing to wait for, as in `statement`: nobody else can write until we have committed.
_INSIST_AND_ANNOUNCE = f""",
last AS (
    UPDATE latest SET position = position + 1
    WHERE EXISTS (SELECT FROM entry) AND (SELECT count(*) FROM messages) >= 0
){_INSIST}, pg_notify(current_schema(), '')"""
_APPEND_IN_GROUP = " ".join(f"{_APPEND}{_INSIST}".split())
_APPEND_ALONE = " ".join(f"{_APPEND}{_INSIST_AND_ANNOUNCE}".split())

ANNOUNCE = (
    "WITH last AS (UPDATE latest SET position = position + 1)"
    " SELECT pg_notify(current_schema(), '')"
)
"""The end of `append`, once for all entries of a transaction."""


def append(plan: ProjectPlan, *, is_alone: bool) -> list[tuple[str, dict[str, Value]]]:
    """Return the statements with their values. They fail if nothing is to be written.

    `is_alone`: they are a transaction of their own.
    """
    values = _values(plan)
    locks = (_LOCK, _LOCK_LEASE) if plan.lease else (_LOCK,)
    write = _APPEND_ALONE if is_alone else _APPEND_IN_GROUP
    return [(sql, values) for sql in (_MAKE, *locks, write)]


def _values(plan: ProjectPlan) -> dict[str, Value]:
    written = [change for change in plan.changes if change.content is not None]
    removed = [change for change in plan.changes if change.content is None]
    messages = sorted(plan.outbox, key=lambda message: message.key)
    return {
        "schema_known": VERSION,
        "project": plan.project,
        "genesis": GENESIS,
        "key": plan.key,
        "body": plan.body,
        "at_ms": plan.at_ms,
        "lease": plan.lease.name if plan.lease else None,
        "epoch": plan.lease.epoch if plan.lease else 0,
        "condition_kinds": Texts(condition.kind for condition in plan.conditions),
        "condition_keys": Texts(condition.key for condition in plan.conditions),
        "condition_seqs": Numbers(condition.seq for condition in plan.conditions),
        "kinds": Texts(change.kind for change in written),
        "keys": Texts(change.key for change in written),
        "contents": Contents(change.content for change in written),
        "removed_kinds": Texts(change.kind for change in removed),
        "removed_keys": Texts(change.key for change in removed),
        "message_keys": Texts(message.key for message in messages),
        "message_topics": Texts(message.topic for message in messages),
        "message_contents": Contents(message.content for message in messages),
    }
