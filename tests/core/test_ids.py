"""Ids: derived ones are the same everywhere, and differ when anything differs."""

from interlock.core import ids


def test_derived_ids_are_pinned() -> None:
    node, attempt = ids.node_id(bytes(8)), ids.attempt_id(bytes(5))

    assert ids.first_attempt(node) == "try_3a76e0e9cb"
    assert ids.child_node(node, attempt) == "node_5eab9de82701cdc6"
    assert ids.rewound_attempt(attempt, ids.BlobRef("sha256:00")) == "try_e7b9f3783a"


def test_the_bytes_of_an_id_come_back() -> None:
    raw = bytes(range(8))

    assert ids.raw_bytes(ids.node_id(raw)) == raw
    assert ids.raw_bytes(ids.attempt_id(raw)) == raw[:5]
