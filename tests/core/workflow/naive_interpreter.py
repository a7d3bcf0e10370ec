"""A naive model of the workflow language: generators with real loops, which cannot be stored."""

from collections.abc import Generator
from typing import Any, NamedTuple, cast

import msgspec

from interlock.core.canonical import Json
from interlock.core.workflow.packs import LoopControlArtifact
from tests.core.workflow.workflow_samples import WALKED, Doc


class Deed(NamedTuple):
    """What an agent submits: what it sets, and what it decides about a loop."""

    sets: Doc
    decision: Any = None
    loop_id: str | None = None

    @property
    def control(self) -> LoopControlArtifact | None:
        return LoopControlArtifact(self.decision, self.loop_id) if self.decision else None


class Odd(Exception):
    """A question without an answer."""

    def __init__(self, about: str, pointer: str) -> None:
        super().__init__(about)
        self.about, self.pointer = about, pointer


class Pass(msgspec.Struct):
    part: Doc
    number: int
    decision: Any = None


class Model:
    """The same language, written as one would if a program never had to stop in the middle."""

    def __init__(self, document: Doc) -> None:
        self._parts = written_out(document["steps"], "/steps")
        self._done: list[Deed] = []
        self._renew()

    def _renew(self) -> None:
        self.context: Doc = {}
        self.passes: list[Pass] = []
        self._waiting: Deed | None = None
        self._walk = self._whole()
        next(self._walk)
        for deed in self._done:
            self._walk.send(deed)

    def after(self, deed: Deed) -> str | Odd | None:
        """The next step; what led there is in `log`, `asked` and `bounded`."""
        self.log: list[tuple[str, str]] = []
        self.asked: list[Doc] = []
        self.bounded: list[str] = []
        try:
            found = self._walk.send(deed)
        except Odd as odd:
            asked = list(self.asked)
            self._renew()
            self.asked = asked
            return odd
        self._done.append(deed)
        return found

    def _whole(self) -> Generator[str | None, Deed]:
        self._take((yield None))
        yield from self._block(self._parts)
        self.log.append(("complete", ""))
        yield None

    def _block(self, parts: list[Doc]) -> Generator[str | None, Deed]:
        for part in parts:
            kind, wanted = part["type"], part.get("runCondition")
            if wanted and not self._ask(wanted, part, "/runCondition", self.passes):
                self.log.append(("skipped" if kind == "step" else "loop_skipped", part["id"]))
            elif kind == "loop":
                yield from self._loop(part)
            elif kind == "group":
                self.log.append(("loop_entered", part["id"]))
                yield from self._block(part["body"])
                self.log.append(("loop_ended", part["id"]))
            else:
                self.log.append(("chosen", part["id"]))
                self._take((yield part["id"]))

    def _loop(self, part: Doc) -> Generator[str | None, Deed]:
        if not self._wants(part, 0, self._decided_beforehand(part)):
            self.log.append(("loop_skipped", part["id"]))
            return
        for number in range(1, part["loop"]["maxIterations"] + 1):
            self.log.append(("loop_entered" if number == 1 else "pass_begun", part["id"]))
            self.passes.append(Pass(part, number))
            yield from self._block(part["body"])
            if not self._wants(part, number, self.passes.pop().decision):
                self.log.append(("loop_ended", part["id"]))
                return
        self.log.append(("loop_bounded", part["id"]))
        self.bounded.append(part["id"])

    def _wants(self, part: Doc, done: int, decision: Any) -> bool:
        rule = part["loop"]
        match rule:
            case _ if decision:
                return decision == "continue"
            case {"items": name}:
                items = self.seen(self.passes).get(name)
                if not isinstance(items, list):
                    raise Odd(part["id"], f"{part['at']}/loop/items")
                return done < len(cast("list[Json]", items))
            case {"count": int(times)}:
                return done < times
            case {"count": name}:
                times = self.context.get(name)
                if times not in (0, 1, 2, 4, "2"):
                    raise Odd(part["id"], f"{part['at']}/loop/count")
                return done < int(times)
            case {"condition": wanted}:
                passes = [*self.passes, Pass(part, done + 1)]
                held = self._ask(wanted, part, "/loop/condition", passes)
                return held == (rule["type"] == "while")
            case _:
                return True

    def _take(self, deed: Deed) -> None:
        self.context = {**self.context, **deed.sets}
        self._waiting = deed
        for around in reversed(self.passes):
            if deed.decision and _is_meant(around.part, deed):
                around.decision, self._waiting = deed.decision, None
                return

    def _decided_beforehand(self, part: Doc) -> Any:
        """One decision is about one loop, and about none behind the next step; only to stop it."""
        deed = self._waiting
        if deed is None or not _takes_decisions(part):
            return None
        self._waiting = None
        return "stop" if deed.decision == "stop" and _is_meant(part, deed) else None

    def seen(self, passes: list[Pass]) -> Doc:
        found = dict(self.context)
        for one in passes:
            rule = one.part["loop"]
            found[rule["iterationVar"]] = one.number
            if "items" in rule:
                items: Any = found.get(rule["items"])
                is_there = isinstance(items, list) and one.number <= len(cast("list[Json]", items))
                found[rule["itemVar"]] = items[one.number - 1] if is_there else None
                found["currentIndex"] = one.number - 1
        return found

    def _ask(self, wanted: Doc, part: Doc, place: str, passes: list[Pass]) -> bool:
        self.asked.append(wanted)
        try:
            return _holds(wanted, f"{part['at']}{place}", part["id"], self.seen(passes))
        except Odd as odd:
            # What stands in another file has no place in this one but that of its call.
            raise Odd(odd.about, part["at"]) if part["isElsewhere"] else odd from None


def _holds(wanted: Doc, at: str, about: str, seen: Doc) -> bool:
    match wanted:
        case {"not": part}:
            return not _holds(part, f"{at}/not", about, seen)
        case {"and": parts}:
            return all(_holds(one, f"{at}/and/{i}", about, seen) for i, one in enumerate(parts))
        case {"or": parts}:
            return any(_holds(one, f"{at}/or/{i}", about, seen) for i, one in enumerate(parts))
        case {"var": var, "equals": value}:
            return seen.get(var) == value
        case {"var": var, "gt": value}:
            found = seen.get(var)
            if isinstance(found, str | list):
                raise Odd(about, at)
            return found is not None and found > value
        case _:
            return bool(seen.get(wanted["var"]))


def _takes_decisions(part: Doc) -> bool:
    """The agent may decide about any loop that does not go over something counted."""
    return not {"items", "count"} & part["loop"].keys()


def _is_meant(part: Doc, deed: Deed) -> bool:
    source = part["loop"].get("conditionSource", {})
    return _takes_decisions(part) and deed.loop_id in (None, part["id"], source.get("loopId"))


def written_out(parts: list[Doc], at: str, prefix: str = "") -> list[Doc]:
    """Every part with its place, its kind and what the compiler makes of it."""
    found: list[Doc] = []
    for index, part in enumerate(parts):
        here = at if prefix else f"{at}/{index}"
        common = {"at": here, "isElsewhere": bool(prefix)}
        whole = {**part, **common, "id": f"{prefix}{part['id']}", "type": "step"}
        if "loop" in part:
            body = written_out(part["body"], f"{here}/body")
            found.append({**whole, "type": "loop", "body": body})
            continue
        inner = [{name: value for name, value in whole.items() if name != "runCondition"}]
        if "templateCall" in part:
            inner = written_out(WALKED["steps"], here, f"{part['id']}.")
        elif "verification" in part:
            inner.append({**common, "id": f"{part['id']}__verification", "type": "step"})
        if "runCondition" not in part:
            found += inner
        elif len(inner) == 1:
            found.append(whole)
        else:
            found.append({**whole, "type": "group", "body": inner})
    return found
