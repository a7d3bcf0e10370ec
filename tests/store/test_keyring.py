"""The keyring: the same for every process; as a file, private and crash-safe."""

import stat
from pathlib import Path

import pytest

from interlock.store.failures import StoreUnusable
from interlock.store.keyring import FileKeyring, write_private_file
from tests.scenes import opening
from tests.store.processes import run_together
from tests.stores import Place


@pytest.mark.invariant("keyring-is-private")
def test_only_its_owner_can_read_the_keyring(tmp_path: Path) -> None:
    FileKeyring(tmp_path / "keyring", bytes)

    assert stat.S_IMODE((tmp_path / "keyring").stat().st_mode) == 0o600


@pytest.mark.invariant("keyring-is-private")
def test_replacing_a_file_that_others_could_read_makes_it_private(tmp_path: Path) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(b"old")
    path.chmod(0o644)

    write_private_file(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["keyring"]


def test_the_first_key_is_asked_for_in_a_transaction_and_is_no_part_of_it(unmade: Place) -> None:
    """As by a server whose first call is one of those that are written together."""
    store = unmade.open()

    def write() -> None:
        with store.log.group_commit():
            store.log.append(opening())
            store.keyring.current()
            raise KeyError("nothing of it is to be kept")

    with pytest.raises(KeyError):
        write()

    assert store.log.all_sessions() == []
    assert store.keyring.current() == unmade.keyring().current()


@pytest.mark.invariant("keyring-is-shared")
@pytest.mark.parametrize("place", ["sqlite", "postgres", "pooled"], indirect=True)
def test_what_another_process_changes_is_seen_at_once(place: Place) -> None:
    """A token may be signed with a key that was made a moment ago, by somebody else."""
    store, there = place.open(), place.keyring()
    here = store.keyring
    first = here.current()
    assert len(first.secret) == 32

    for number in range(3):
        fresh = there.rotate()
        if number:
            store.reader.position()  # whatever is read
        else:
            here.refresh()
        assert here.current() == fresh
        assert list(here.keys().values())[-1] == fresh, "in the order they were made"
        assert here.keys()[first.id].state == "retired"
    assert not here.revoke(there.current().id), "the key that signs"
    assert not here.revoke(70_000), "none"
    assert here.revoke(first.id)
    assert not here.revoke(first.id), "again"
    there.refresh()
    assert there.keys()[first.id].state == "revoked"
    states = [key.state for key in there.keys().values()]
    assert sorted(states) == ["current", "retired", "retired", "revoked"]


def rotate_many(place: Place) -> None:
    keyring = place.keyring()
    for _ in range(10):
        keyring.rotate()


@pytest.mark.slow
def test_several_processes_that_rotate_at_once_lose_no_key(place: Place) -> None:
    place.keyring()

    run_together(rotate_many, [(place,)] * 4)

    states = [key.state for key in place.keyring().keys().values()]
    assert (states.count("current"), states.count("retired")) == (1, 40)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"v": 2, "keys": []}', b"\xff"])
def test_a_broken_keyring_is_named_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(content)

    with pytest.raises(StoreUnusable, match="keyring"):
        FileKeyring(path, bytes).keys()

    assert path.read_bytes() == content
