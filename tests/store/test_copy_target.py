"""What a store can do so that it can be copied, and copied to, whatever engine it has."""

import os

import pytest

from interlock.core import canonical
from interlock.core.ids import NodeId, SessionId
from interlock.core.tokens import SigningKey
from interlock.store.failures import StoreUnusable
from interlock.store.log import Log
from interlock.store.open_store import open_target
from interlock.store.records import EarlierRequest
from tests.scenes import ROOT, after, noting, opening
from tests.stores import Place


def test_all_sessions_are_listed_in_the_order_in_which_they_began(log: Log) -> None:
    names = [SessionId(f"ses_000000000000000{number}") for number in (3, 1, 2)]
    plans = [opening(name) for name in names]
    for plan in plans:
        log.append(plan)
    log.append(noting(after(plans[0]), "on"))

    assert log.all_sessions() == names
    log.delete(names[1])
    assert log.all_sessions() == [names[0], names[2]]


def test_requests_are_kept_as_another_store_knew_them(log: Log) -> None:
    first, second = canonical.blob_ref(b"1"), canonical.blob_ref(b"2")
    known = EarlierRequest(canonical.blob_ref(b"arguments"), NodeId(ROOT), 1_000)
    newer = EarlierRequest(canonical.blob_ref(b"others"), NodeId(ROOT), 2_000)
    log.import_requests([])
    assert log.requests() == []

    log.import_requests([(first, known), (second, known)])
    log.import_requests([(second, newer)])

    assert dict(log.requests()) == {first: known, second: newer}
    assert log.earlier_request(second) == newer


def test_only_who_copies_to_it_opens_a_store_that_is_unfinished(place: Place) -> None:
    target = open_target(place.url or str(place.home), os.urandom)
    target.log.append(opening())
    target.log.set_unfinished(is_unfinished=True)
    target.close()

    with pytest.raises(StoreUnusable, match="a copy that is not finished"):
        place.log().all_sessions()
    with pytest.raises(StoreUnusable, match="a copy that is not finished"):
        place.reader().all_sessions()
    again = open_target(place.url or str(place.home), os.urandom)
    assert again.reader.all_sessions() == again.log.all_sessions() != []
    again.log.set_unfinished(is_unfinished=False)
    again.close()
    assert place.log().all_sessions() != []


def test_the_keys_of_another_store_take_the_place_of_ours(place: Place) -> None:
    keyring, elsewhere = place.keyring(), place.keyring()
    ours = keyring.current()
    keys = (
        SigningKey(1, b"1" * 32, "revoked"),
        SigningKey(2, b"2" * 32, "retired"),
        SigningKey(3, b"3" * 32, "current"),
    )

    keyring.adopt(keys)

    for seen in (keyring, elsewhere, place.keyring()):
        assert dict(seen.keys()) == {key.id: key for key in keys}
        assert seen.current() == keys[2] != ours
