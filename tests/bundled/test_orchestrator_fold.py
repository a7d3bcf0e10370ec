"""The scripts of the orchestrator skill and the core, tried with whatever mail and patterns."""

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.coordination.inbox_sessions import fold_inbox
from interlock.core.coordination.path_patterns import (
    PathSet,
    covers,
    normalise_pattern,
    overlap,
)
from tests.bundled.test_orchestrator_skill import NOW_S, SCRIPTS, START_S, as_json

PATTERN_PARTS = ("a", "b", "*", "**", "/", "?", "[ab]", "[!a]", "{a,b/a}", ".", "[", "]", "!", "-")


@pytest.fixture(scope="module")
def script_modules() -> Iterator[dict[str, Any]]:
    """The modules of the scripts themselves: a process for each example would take minutes."""
    names = ("session_identity", "session_cleanup", "mail_fold", "path_overlap")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(SCRIPTS), *sys.path])
        patch.setattr(sys, "dont_write_bytecode", True)
        yield {name: importlib.import_module(name) for name in names}
        for name in names:
            del sys.modules[name]


words = st.sampled_from(
    (
        "BlueLake",
        f"BlueLake-{START_S}",
        f"BlueLake-{START_S + 60}",
        "RedFox",
        f"RedFox-{START_S}000",
    )
)
bodies = st.lists(
    st.tuples(
        st.sampled_from(
            ("ID", "- **Session ID**", "* **Track:**", "Beads", "files-reserved", "Epoch")
        ),
        st.one_of(
            words, st.sampled_from(("", "none", "2", "[a, `b` (x)]", "{a,b}/*, c", "\n- d\n- e"))
        ),
    ).map(
        lambda pair: f"{pair[0].removesuffix(':**')}{':**' if ':**' in pair[0] else ':'} {pair[1]}"
    ),
    max_size=4,
).map("\n".join)
kinds = st.sampled_from(
    (
        "[SESSION START] x",
        "[SESSION END] x",
        "[HEARTBEAT] Track a",
        "[TAKEOVER] x",
        "[DEP] x",
        "Re: x",
    )
)
moments = st.one_of(
    st.integers(NOW_S - 2_000, NOW_S + 200),
    st.sampled_from(
        (None, "", "?", True, -1, "2025-01-01T00:20:00Z", "2025-01-01 00:25:00,1234+0000", 1e300)
    ),
)
messages = st.fixed_dictionaries(
    {
        "sender": st.one_of(words, st.just("")),
        "subject": kinds,
        "body": st.one_of(
            bodies,
            st.just(None),
            st.fixed_dictionaries(
                {}, optional={"id": words, "track": words, "beads": st.lists(words), "epoch": words}
            ).map(json.dumps),
        ),
        "created_ts": moments,
    }
)


@given(st.lists(messages, max_size=6), st.one_of(st.just(""), words))
def test_the_fold_of_the_script_is_that_of_the_core(
    script_modules: dict[str, Any], inbox: list[dict[str, Any]], own: str
) -> None:
    now_ms, script = NOW_S * 1_000, script_modules["mail_fold"]
    expected = {one.record.id: one for one in fold_inbox(inbox, own=own, now_ms=now_ms)}

    traces = script.fold(inbox, own, now_ms)
    found = {name: script.observe(name, trace, now_ms, 0) for name, trace in traces.items()}

    assert found == {
        name: {"record": as_json(one.record), "silent_ms": one.silent_ms, "reason": one.reason}
        for name, one in expected.items()
    }


patterns = st.lists(st.sampled_from(PATTERN_PARTS), min_size=1, max_size=7).map("".join)


@given(patterns, patterns)
def test_the_overlap_of_the_script_is_that_of_the_core(
    script_modules: dict[str, Any], one: str, other: str
) -> None:
    script_overlap = script_modules["path_overlap"].common_path
    normal = [normalise_pattern(text, "/") for text in (one, other)]
    sets = [PathSet((text,)) for text in normal if isinstance(text, str)]
    if len(sets) < 2 or "!" in (one[0], other[0]):
        assert script_overlap(one, other) is None
        return
    left, right = sets

    found = script_overlap(one, other)

    assert (found is None) == (overlap(left, right) is None)
    if found:
        assert covers(left, found)
        assert covers(right, found)
