"""A Beads tracker, through its command `bd --json`: without a shell, for two seconds at most."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from interlock.core.coordination.beads_json import beads_status, from_beads_json
from interlock.core.coordination.records import WorkItem, WorkStatus
from interlock.core.refusal import TextRefusal
from interlock.workspace.outside.quotation import quote

COMMAND_SECONDS = 2.0
OUTPUT_BYTES_MAX = 1024 * 1024
_ITEMS_MAX = 500
_SLICE_SECONDS = 0.05
_HOLDER = re.compile(r"already claimed by ([^\"\n]+)")


class BeadsFailed(Exception):
    """`bd` did not do what it was asked for. The message is a sentence that says why."""


class BeadHeld(TextRefusal, frozen=True):
    """Somebody else has claimed the item in the Beads tracker."""

    item: str
    holder: str

    code = "work_held"
    error = "`{item}` is already claimed by {holder}"
    hint = "Take another one: `work_items` with `ready` lists what is free."


class BeadsTracker(msgspec.Struct, frozen=True):
    """The tracker of a project. Every method raises `BeadsFailed` if `bd` does not do it."""

    project: Path
    command: str = "bd"
    timeout_seconds: float = COMMAND_SECONDS

    def list_ready(self) -> list[WorkItem]:
        return self._items("ready", f"--limit={_ITEMS_MAX}")

    def list_items(self, status: WorkStatus | None = None) -> list[WorkItem]:
        """Return the items with a status, or those that are not done, as `bd list` has them."""
        chosen = [f"--status={beads_status(status)}"] if status else []
        return self._items("list", f"--limit={_ITEMS_MAX}", *chosen)

    def show(self, item_id: str) -> WorkItem:
        return self._item("show", "--", item_id)

    def create(
        self, title: str, priority: int = 2, description: str = "", depends_on: Sequence[str] = ()
    ) -> WorkItem:
        # A value stands in one word with its option: a title may begin with a dash.
        links = [f"--deps={','.join(depends_on)}"] if depends_on else []
        return self._item(
            "create",
            f"--title={title}",
            f"--priority={priority}",
            f"--description={description}",
            *links,
        )

    def claim(self, item_id: str, actor: str) -> WorkItem | BeadHeld:
        """Claim an item for an actor, who may have it already.

        Versions of `bd` differ in how they refuse: with or without an exit code, in words or in
        JSON, on either output. All say who holds it.
        """
        arguments = ("update", "--claim", f"--actor={actor}", "--", item_id)
        code, output, errors = self._run(*arguments)
        holder = _HOLDER.search(f"{errors}\n{output}")
        if holder and holder[1].strip() != actor:
            return BeadHeld(item_id, quote(holder[1]))
        item = self.show(item_id) if holder else self._only(self._beads(code, output, errors))
        # What is recorded counts: some versions take the actor of their config instead.
        return item if item.assignee == actor else BeadHeld(item_id, quote(item.assignee))

    def close(self, item_id: str, reason: str) -> WorkItem:
        return self._item("close", f"--reason={reason}", "--", item_id)

    def _item(self, *arguments: str) -> WorkItem:
        return self._only(self._items(*arguments))

    def _only(self, items: list[WorkItem]) -> WorkItem:
        if len(items) != 1:
            raise BeadsFailed(f"`{self.command}` answered with {len(items)} items instead of one.")
        return items[0]

    def _items(self, *arguments: str) -> list[WorkItem]:
        return self._beads(*self._run(*arguments))

    def _beads(self, code: int, output: str, errors: str) -> list[WorkItem]:
        if code:
            reason = quote(errors or output) or "without a word"
            raise BeadsFailed(f"`{self.command}` ended with {code}: {reason}")
        try:
            return [from_beads_json(bead) for bead in _objects_in(msgspec.json.decode(output))]
        except (ValueError, RecursionError) as error:
            reason = f" ({quote(errors)})" if errors else ""
            raise BeadsFailed(
                f"`{self.command}` answered with no JSON of Beads{reason}."
            ) from error

    def _run(self, *arguments: str) -> tuple[int, str, str]:
        """Run `bd`; return its exit code, output and errors."""
        program = shutil.which(self.command)
        if not program or not os.path.isabs(program):  # not one that comes with the project
            raise BeadsFailed(f"`{self.command}` is not in PATH.")
        try:
            process = subprocess.Popen(
                [program, arguments[0], "--json", *arguments[1:]],
                cwd=self.project,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # one group to end
            )
        except (OSError, ValueError) as error:
            raise BeadsFailed(f"`{self.command}` cannot be run: {error}") from error
        with process:
            try:
                outputs = self._read(process)
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        output, errors = (text.decode("utf-8", "replace") for text in outputs)
        return process.returncode, output, errors

    def _read(self, process: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
        """Return both outputs when `bd` has ended; what it leaves running may hold them open."""
        deadline = time.monotonic() + self.timeout_seconds
        assert process.stdout, "it is piped"
        assert process.stderr, "it is piped"
        outputs = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
        with selectors.DefaultSelector() as selector:
            for pipe in outputs:
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map() and time.monotonic() < deadline:
                has_ended = process.poll() is not None
                events = selector.select(0 if has_ended else _SLICE_SECONDS)
                if has_ended and not events:
                    break
                for key, _ in events:
                    content = os.read(key.fd, 65_536)
                    outputs[key.fd] += content
                    if not content:
                        selector.unregister(key.fd)
                if sum(map(len, outputs.values())) > OUTPUT_BYTES_MAX:
                    raise BeadsFailed(f"`{self.command}` printed more than 1 MiB.")
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            slowness = f"`{self.command}` took more than {self.timeout_seconds:g} s."
            raise BeadsFailed(slowness) from error
        stdout, stderr = outputs.values()
        return stdout, stderr


def _objects_in(answer: Any) -> list[dict[str, Any]]:
    """Return the items of an answer: one or several, bare or in an envelope."""
    match answer:
        case {"data": content, "schema_version": _}:
            return _objects_in(content)
        case list():
            return cast("list[dict[str, Any]]", answer)
        case {"id": _}:
            return [cast("dict[str, Any]", answer)]
        case _:
            raise ValueError("neither an item nor a list of them")
