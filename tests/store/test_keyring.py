"""The keyring file: private, crash-safe, the same for every process."""

import stat
from pathlib import Path

import pytest

from interlock.store.failures import StoreUnusable
from interlock.store.keyring import Keyring, write_private


@pytest.mark.invariant("keyring-is-private")
def test_only_its_owner_can_read_the_keyring(tmp_path: Path) -> None:
    Keyring(tmp_path / "keyring", bytes)

    assert stat.S_IMODE((tmp_path / "keyring").stat().st_mode) == 0o600


@pytest.mark.invariant("keyring-is-private")
def test_replacing_a_file_that_others_could_read_makes_it_private(tmp_path: Path) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(b"old")
    path.chmod(0o644)

    write_private(path, b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["keyring"]


def test_a_second_process_finds_the_key_of_the_first(tmp_path: Path) -> None:
    first = Keyring(tmp_path / "keyring", lambda count: b"\x01" * count)
    second = Keyring(tmp_path / "keyring", lambda count: b"\x02" * count)

    assert second.current() == first.current()
    assert first.current().secret == b"\x01" * 32


def test_a_change_by_another_process_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "keyring"
    keyring = Keyring(path, lambda count: b"\x01" * count)
    before = keyring.current()
    other = Keyring(tmp_path / "other", lambda count: b"\x02" * count).current()
    write_private(path, (tmp_path / "other").read_bytes())

    assert keyring.current() == other != before


@pytest.mark.parametrize("content", [b"", b"{}", b'{"v": 2, "keys": []}', b"\xff"])
def test_a_broken_keyring_is_named_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keyring"
    path.write_bytes(content)

    with pytest.raises(StoreUnusable, match="keyring"):
        Keyring(path, bytes).keys()

    assert path.read_bytes() == content
