"""A stand-in for `bd`, with its documented commands and JSON and a file as its database.

`BD_JSON_ENVELOPE=1` is the real one's switch. `FAKE_BD` names a way to fail, or to behave as other
versions do: hang, fail, garbage, huge, leave_running, quiet_refusal, json_refusal, config_actor.
"""

import argparse
import fcntl
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATABASE = Path(".beads") / "beads.json"
HOOKS = Path(".beads") / "hooks"
MODE = os.environ.get("FAKE_BD", "")
DAEMON = [sys.executable, "-c", "import time; time.sleep(60)"]


def main() -> int:
    if code := misbehave():
        return code
    options = parse_options()
    if not options.json:
        print("Error: this one speaks JSON only", file=sys.stderr)
        return 2
    if not DATABASE.parent.is_dir():
        print("Error: no beads database found. Run 'bd init'", file=sys.stderr)
        return 1
    with DATABASE.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        beads: dict[str, Any] = json.loads(file.read() or "{}")
        if getattr(options, "id", None) not in (None, *beads):
            code, answer = 1, refusal(f"no issue found matching {options.id!r}")
        else:
            code, answer = COMMANDS[options.command](beads, options)
        file.truncate(0)
        file.write(json.dumps(beads))
    if (hook := HOOKS / f"on_{options.command}").exists():  # the real one runs it later, alone
        subprocess.run([hook], input=b"", check=False)
    if answer is not None:
        print(json.dumps(enveloped(answer)))
    return code


def misbehave() -> int:
    if MODE == "hang":
        with Path("hold.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            Path("begun").touch()
            subprocess.run(DAEMON, pass_fds=[lock.fileno()], check=False)
    if MODE == "fail":
        print("Error: database is \x1b[31mlocked\x1b[0m", file=sys.stderr)
        return 3
    if MODE == "garbage":
        print("Welcome to beads!")
        sys.exit(0)
    if MODE == "huge":
        print("[" + " " * (4 * 1024 * 1024) + "]")
        sys.exit(0)
    if MODE == "leave_running":  # with our output, as a daemon that was started carelessly
        process = subprocess.Popen(DAEMON, start_new_session=True)
        Path("daemon.pid").write_text(str(process.pid))
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bd", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in COMMANDS:
        command = commands.add_parser(name, allow_abbrev=False)
        command.add_argument("--json", action="store_true")
        command.add_argument("--actor", default=os.environ.get("BEADS_ACTOR", "unknown"))
        if name in ("show", "update", "close"):
            command.add_argument("id")
        if name in ("ready", "list"):
            command.add_argument("--limit", type=int, default=50)
            command.add_argument("--status")
        if name == "create":
            command.add_argument("--title", required=True)
            command.add_argument("--priority", type=int, choices=range(5), default=2)
            command.add_argument("--description", default="")
            command.add_argument("--deps", default="")
        if name == "update":
            command.add_argument("--claim", action="store_true")
        if name == "close":
            command.add_argument("--reason", default="")
    return parser.parse_args()


def ready(beads: dict[str, Any], options: argparse.Namespace) -> tuple[int, Any]:
    free = [
        bead
        for bead in beads.values()
        if bead["status"] == "open"
        and all(
            beads[link["depends_on_id"]]["status"] == "closed"
            for link in bead.get("dependencies", [])
            if link["type"] == "blocks"
        )
    ]
    return 0, sorted(free, key=lambda bead: bead["priority"])[: options.limit]


def list_beads(beads: dict[str, Any], options: argparse.Namespace) -> tuple[int, Any]:
    chosen = [
        bead
        for bead in beads.values()
        if (bead["status"] == options.status if options.status else bead["status"] != "closed")
    ]
    return 0, chosen[: options.limit]


def show(beads: dict[str, Any], options: argparse.Namespace) -> tuple[int, Any]:
    bead = beads[options.id]
    others = [
        {**beads[link["depends_on_id"]], "dependency_type": link["type"]}
        for link in bead.get("dependencies", [])
    ]
    return 0, [{**bead, "dependencies": others} if others else bead]


def create(beads: dict[str, Any], options: argparse.Namespace) -> tuple[int, Any]:
    name = f"bd-{len(beads) + 1}"
    bead = {
        "id": name,
        "title": options.title,
        "description": options.description,
        "status": "open",
        "priority": options.priority,
        "issue_type": "task",
        "created_at": written_time(),
        "updated_at": written_time(),
    }
    links = [
        {"issue_id": name, "depends_on_id": other, "type": "blocks"}
        for other in filter(None, options.deps.split(","))
    ]
    if links:
        bead["dependencies"] = links
    beads[name] = bead
    return 0, bead


def update(beads: dict[str, Any], options: argparse.Namespace) -> tuple[int, Any]:
    bead = beads[options.id]
    assert options.claim, "nothing else is asked for"
    actor = "configured" if MODE == "config_actor" else options.actor
    holder = bead.get("assignee", "")
    if holder and (holder != actor or MODE == "quiet_refusal"):
        text = f"Error claiming {options.id}: issue already claimed by {holder}"
        if MODE == "json_refusal":
            return 1, {"error": text, "schema_version": 1}
        print(text, file=sys.stderr)
        return (0, None) if MODE == "quiet_refusal" else (1, None)
    if bead["status"] not in ("open", "in_progress"):
        return 1, refusal(f"issue not claimable: status {bead['status']}")
    bead |= {"assignee": actor, "status": "in_progress", "updated_at": written_time()}
    bead.setdefault("started_at", written_time())
    return 0, [bead]


def close(beads: dict[str, Any], options: argparse.Namespace) -> tuple[int, Any]:
    bead = beads[options.id]
    bead |= {"status": "closed", "closed_at": written_time(), "close_reason": options.reason}
    return 0, [bead]


def refusal(text: str) -> dict[str, Any]:
    return {"error": text, "schema_version": 1}


def enveloped(answer: Any) -> Any:
    if os.environ.get("BD_JSON_ENVELOPE") == "1":
        return {"schema_version": 1, "data": answer}
    return answer | {"schema_version": 1} if "error" in answer or "id" in answer else answer


def written_time() -> str:
    """Now, as Go writes it: with nanoseconds."""
    return datetime.fromtimestamp(time.time_ns() / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f789Z")


COMMANDS = {
    "ready": ready,
    "list": list_beads,
    "show": show,
    "create": create,
    "update": update,
    "close": close,
}

if __name__ == "__main__":
    sys.exit(main())
