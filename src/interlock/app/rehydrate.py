"""Show again where a run stands. Handed a log that it can only read."""

from collections.abc import Callable

from interlock.app import place as places
from interlock.app.place import Place
from interlock.app.refusals import BadToken, NodeGone, Unhealthy
from interlock.core import ids
from interlock.core.session import decide
from interlock.core.session.answer import Answered
from interlock.store.keyring import Keyring
from interlock.store.log import LogReader


def rehydrate(
    reader: LogReader, keyring: Keyring, entropy: Callable[[int], bytes], *, token: str
) -> Answered | BadToken | NodeGone | Unhealthy:
    place = places.find(reader, token, keyring.keys())
    if not isinstance(place, Place):
        return place
    return decide.show(
        place.node,
        place.run,
        prompt=places.prompt_of(reader, place.node),
        attempt=ids.attempt_id(entropy(ids.ATTEMPT_BYTES)),
        key=keyring.current(),
    )
