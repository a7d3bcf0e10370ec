"""Agents that share a server over HTTP, in a process of their own: `python -m bench.agents`.

Each has a run and a connection that it keeps. What they wait for is printed as JSON.
"""

import asyncio
import sys
import time
from typing import Any

import msgspec
import uvloop

from bench.runs import notes


class Played(msgspec.Struct, frozen=True):
    samples: list[float]
    """How long each advance took, in ms."""
    seconds: float
    """From the first advance to the last, of all agents together."""


class _Agent:
    def __init__(self, port: int, bearer: str, workspace: str, number: int) -> None:
        self._port, self._workspace, self._number = port, workspace, number
        self._head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {bearer}\r\n"
            f"mcp-session-id: {number}\r\ncontent-type: application/json\r\ncontent-length: "
        ).encode()
        self.samples: list[float] = []

    async def begin(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        goal = f"Agent {self._number} {time.time_ns()}"
        begin = {"workflowId": "line", "goal": goal, "workspacePath": self._workspace}
        self._answer = await self._call("start_workflow", begin)

    async def advance(self, calls: int) -> None:
        for number in range(calls):
            token = self._answer["structuredContent"]["continueToken"]
            arguments = {"continueToken": token, "output": {"notesMarkdown": notes(number)}}
            begun = time.perf_counter()
            self._answer = await self._call("continue_workflow", arguments)
            self.samples.append((time.perf_counter() - begun) * 1000)
        self._writer.close()

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        )
        self._writer.write(b"%s%d\r\n\r\n%s" % (self._head, len(body), body))
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        result = msgspec.json.decode(await self._reader.readexactly(length))["result"]
        assert not result["isError"], result
        return result


async def play(port: int, bearer: str, workspace: str, *, agents: int, calls: int) -> Played:
    all_of_them = [_Agent(port, bearer, workspace, number) for number in range(agents)]
    for agent in all_of_them:
        await agent.begin()
    begun = time.perf_counter()
    await asyncio.gather(*(agent.advance(calls) for agent in all_of_them))
    seconds = time.perf_counter() - begun
    return Played([sample for agent in all_of_them for sample in agent.samples], seconds)


def main() -> None:
    port, bearer, workspace, agents, calls = sys.argv[1:]
    played = uvloop.run(play(int(port), bearer, workspace, agents=int(agents), calls=int(calls)))
    sys.stdout.buffer.write(msgspec.json.encode(played))


if __name__ == "__main__":
    main()
