"""A lossy agent against real servers: it repeats, rewinds, loses answers and loses its server.

A model of the run graph predicts what must be recorded. Several ways lead to one store: servers
over real pipes, and connections to one server over HTTP. A call goes any of them.
"""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from interlock.app.context import open_app
from interlock.app.sessions.lookup import check_stream, load_run_graph
from interlock.core import bech32m
from interlock.core.ids import RunId, SessionId
from interlock.core.session.run_head import BLOCKED_IN_ROW_MAX
from interlock.core.tokens import LENGTH, PREFIX
from interlock.core.views.graph import GraphNode
from tests.effort import scale
from tests.mcp.ways import Connection, Pipe, Way
from tests.scenes import linear
from tests.server.http_agent import Up

STEPS = 5
EXAMPLES = scale(10, at_least=10)
"""Of fewer, one that ends early counts too much."""


class ModelNode:
    """What the model knows of a node."""

    def __init__(self, kind: str, notes: str, cursor: int) -> None:
        self.kind, self.notes, self.cursor = kind, notes, cursor
        self.children: list[ModelNode] = []

    @property
    def is_complete(self) -> bool:
        return self.cursor == STEPS

    def shape(self) -> tuple[str, str, list[Any]]:
        return self.kind, self.notes, sorted(child.shape() for child in self.children)


class World:
    """The ways to one store, for all examples: starting servers is what takes time."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.home = directory / "home"
        self.workspace = workspace = directory / "work"
        (workspace / ".interlock" / "workflows").mkdir(parents=True)
        line = workspace / ".interlock" / "workflows" / "line.json"
        line.write_bytes(msgspec.json.encode(linear(STEPS)))
        self.ways: list[Way] = [Pipe(self.home, workspace)]
        self._up = Up(self.home, workspace=workspace) if kind == "http" else None
        if self._up:
            self._up.start()
            self.ways += [Connection(self._up), Connection(self._up)]
        else:
            self.ways += [Pipe(self.home, workspace)]
        self.started = 0
        self.counted: Counter[str] = Counter()

    def close(self) -> None:
        for way in self.ways:
            way.close()
        if self._up:
            self._up.stop()


def line_for(tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    ).encode()


def named(token: str) -> bytes:
    """The node and the attempt that a token names."""
    payload = bech32m.decode(PREFIX, token, LENGTH)
    assert isinstance(payload, bytes)
    return payload[3:16]


class LossyAgent(RuleBasedStateMachine):
    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.tokens: list[tuple[str, ModelNode]] = []
        self.answers: dict[tuple[bytes, str], tuple[bytes, bytes]] = {}
        """What each accepted call was answered, by node and attempt and by what was said: after a
        change of keys the same token is another text.
        """
        self.spent: dict[bytes, int] = {}
        self.blocked = 0
        """Blocked attempts in a row, in the whole run."""

    @initialize()
    def start(self) -> None:
        self.world.started += 1
        arguments = {
            "workflowId": "line",
            "goal": f"Run {self.world.started}",
            "workspacePath": str(self.world.workspace),
        }
        answer = self._structured(
            self._ask(self.world.ways[-1], line_for("start_workflow", arguments))
        )
        told = answer["introduction"]
        self.session, self.run = SessionId(told["session"]), RunId(told["run"])
        self.root = ModelNode("step", "", 0)
        self.tokens.append((answer["continueToken"], self.root))

    @rule(data=st.data(), number=st.integers(0, 3))
    def advance(self, data: st.DataObject, number: int) -> None:
        """With any token, new or old; a used one with other notes is a rewind."""
        self._advance(*self._pick(data), self._way(data), f"notes {number}" if number else "")

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Each way: none need be the one that was taken first."""
        line, reply = data.draw(st.sampled_from(list(self.answers.values())))
        for way in self.world.ways:
            self.world.counted["repeats"] += 1
            assert self._ask(way, line) == reply

    @rule(data=st.data())
    def look_again(self, data: st.DataObject) -> None:
        token, node = self._pick(data)
        answer = self._structured(
            self._ask(self._way(data), line_for("continue_workflow", {"continueToken": token}))
        )
        expected = None if node.is_complete else f"step-{node.cursor + 1}"
        pending: dict[str, Any] | None = answer["pending"]
        assert (pending["stepId"] if pending else None) == expected
        self.tokens.append((answer["continueToken"], node))

    @rule(data=st.data(), number=st.integers(1, 2))
    def mark(self, data: st.DataObject, number: int) -> None:
        token, node = self._pick(data)
        line = line_for(
            "checkpoint_workflow", {"continueToken": token, "notesMarkdown": f"mark {number}"}
        )
        reply = self._ask(self._way(data), line)
        # After a change of keys it is another text, for the same node and attempt.
        assert named(self._structured(reply)["continueToken"]) == named(token)
        if self._is_new((named(token), f"mark {number}"), line, reply):
            node.children.append(ModelNode("checkpoint", f"mark {number}", node.cursor))

    @rule(data=st.data(), number=st.integers(1, 3), dies=st.sampled_from([True, *7 * [False]]))
    def lose_the_answer(self, data: st.DataObject, number: int, *, dies: bool) -> None:
        """And perhaps the server with it. Asked again elsewhere, the call is recorded once."""
        token, node = self._pick(data)
        line = self._hand_in(token, f"notes {number}")
        way, other = self._ways(data)
        way.send(line)
        self.world.counted["operations"] += 1
        if dies:
            self.world.counted["kills"] += 1
            way.kill_the_server()
        else:
            way.lose_the_answer()
        self._settle(line, token, node, f"notes {number}", self._ask(other, line))

    @rule(data=st.data(), number=st.integers(1, 3), is_same=st.booleans())
    def race(self, data: st.DataObject, number: int, is_same: bool) -> None:  # noqa: FBT001
        token, node = self._pick(data)
        notes = [f"notes {number}", f"notes {number if is_same else number + 1}"]
        lines = [self._hand_in(token, text) for text in notes]
        self.world.counted["races"] += 1
        ways = self._ways(data)
        for way, line in zip(ways, lines, strict=True):
            way.send(line)
        replies = [way.reply() for way in ways]
        self.world.counted["operations"] += 2
        if is_same:
            assert replies[0] == replies[1]
        for which in (0, 1):
            self._settle(lines[which], token, node, notes[which], replies[which])

    @rule()
    def rotate_the_keys(self) -> None:
        app = open_app(self.world.home)
        app.keyring.rotate()
        app.close()

    def teardown(self) -> None:
        """Everything that was ever said is said once more; then the graph is compared."""
        for line, reply in self.answers.values():
            self.world.counted["repeats"] += 1
            assert self._ask(self.world.ways[-1], line) == reply
        app = open_app(self.world.home)
        graph = load_run_graph(app, self.run)
        health = check_stream(app.reader, self.session)
        app.close()
        children = graph.children()

        def shape(node: GraphNode) -> tuple[str, str, list[Any]]:
            return node.kind, node.notes, sorted(shape(c) for c in children.get(node.id, []))

        assert health.state == "healthy"
        assert shape(children[None][0]) == self.root.shape()

    def _pick(self, data: st.DataObject) -> tuple[str, ModelNode]:
        index = data.draw(st.integers(0, len(self.tokens) - 1))
        return self.tokens[-1 - index]

    def _way(self, data: st.DataObject) -> Way:
        return data.draw(st.sampled_from(self.world.ways))

    def _ways(self, data: st.DataObject) -> list[Way]:
        """Two of them."""
        first = data.draw(st.integers(0, len(self.world.ways) - 1))
        step = data.draw(st.integers(1, len(self.world.ways) - 1))
        return [self.world.ways[first], self.world.ways[(first + step) % len(self.world.ways)]]

    def _hand_in(self, token: str, notes: str) -> bytes:
        output = {"notesMarkdown": notes}
        return line_for("continue_workflow", {"continueToken": token, "output": output})

    def _advance(self, token: str, node: ModelNode, way: Way, notes: str) -> None:
        line = self._hand_in(token, notes)
        self._settle(line, token, node, notes, self._ask(way, line))

    def _settle(self, line: bytes, token: str, node: ModelNode, notes: str, reply: bytes) -> None:
        result = json.loads(reply)["result"]
        is_waiting = self.blocked >= BLOCKED_IN_ROW_MAX
        call = (named(token), notes)
        if call not in self.answers and (node.is_complete or is_waiting):
            expected = "nothing_pending" if node.is_complete else "run_waits"
            assert result["structuredContent"]["code"] == expected
            return
        assert not result["isError"], result
        if not self._is_new(call, line, reply):
            return
        if self.spent.setdefault(named(token), 0):
            self.world.counted["rewinds"] += 1
        self.spent[named(token)] += 1
        if notes:
            child = ModelNode("step", notes, node.cursor + 1)
            self.blocked = 0
        else:
            child = ModelNode("blocked", "", node.cursor)
            self.blocked += 1
        node.children.append(child)
        self.tokens.append((result["structuredContent"]["continueToken"], child))

    def _is_new(self, call: tuple[bytes, str], line: bytes, reply: bytes) -> bool:
        if call in self.answers:
            self.world.counted["repeats"] += 1
            assert self.answers[call][1] == reply
            return False
        self.answers[call] = (line, reply)
        return True

    def _ask(self, way: Way, line: bytes) -> bytes:
        self.world.counted["operations"] += 1
        way.send(line)
        return way.reply()

    def _structured(self, reply: bytes) -> dict[str, Any]:
        result = json.loads(reply)["result"]
        assert not result["isError"], result
        return result["structuredContent"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "kept_in"),
    [
        ("pipes", "file"),
        ("http", "file"),
        pytest.param("pipes", "postgres", marks=pytest.mark.long),
        pytest.param("http", "postgres", marks=pytest.mark.long),
    ],
    indirect=["kept_in"],
)
@pytest.mark.invariant("replay-is-identical")
@pytest.mark.invariant("rewind-branches")
def test_the_graph_is_what_a_lossy_agent_made(tmp_path: Path, kind: str) -> None:
    world = World(tmp_path, kind)
    try:
        run_state_machine_as_test(
            cast("type[LossyAgent]", partial(LossyAgent, world)),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            ),
        )
    finally:
        world.close()
    counted = world.counted
    again = counted["repeats"] + counted["rewinds"]
    assert counted["operations"] >= 25 * EXAMPLES
    assert again >= 0.3 * counted["operations"]
