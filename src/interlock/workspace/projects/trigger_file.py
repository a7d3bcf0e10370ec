"""The triggers of a project: `.interlock/triggers.toml`, a table for each, as people write them."""

import hashlib
import re
from pathlib import Path
from typing import Any, cast

import msgspec

from interlock.core.triggers.trigger import Trigger, trigger_faults
from interlock.workspace.failures import SettingsBroken
from interlock.workspace.files.regular_file import read_regular_file
from interlock.workspace.files.toml_text import parse_toml

TRIGGERS = Path(".interlock") / "triggers.toml"
TRIGGERS_MAX = 100
FILE_BYTES_MAX = 256 * 1024
_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class TriggerFile(msgspec.Struct, frozen=True):
    digest: str
    """Of its content; empty if there is no such file."""
    triggers: dict[str, Trigger]
    names: tuple[str, ...]
    """Of all, the faulty ones too."""
    faults: tuple[str, ...]
    """All that is wrong with it, in sentences that begin with the trigger."""


def read_trigger_file(root: Path) -> TriggerFile:
    """Read the triggers of a project, the faulty ones left out and said.

    Raises:
        SettingsBroken: the file cannot be read, or is no TOML.
    """
    path = root / TRIGGERS
    try:
        content = read_regular_file(path, FILE_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError):
        return TriggerFile("", {}, (), ())
    except OSError as error:
        raise SettingsBroken(f"`{path}` cannot be read: {error.strerror or error}") from error
    try:
        tables = parse_toml(content)
    except (ValueError, RecursionError) as error:
        raise SettingsBroken(f"`{path}` cannot be used: {error}") from error
    triggers: dict[str, Trigger] = {}
    faults: list[str] = []
    for name, table in list(tables.items())[:TRIGGERS_MAX]:
        trigger = _parse(name, table)
        if isinstance(trigger, Trigger):
            triggers[name] = trigger
        else:
            faults += [f"`{name}`: {fault}" for fault in trigger]
    if len(tables) > TRIGGERS_MAX:
        faults.append(f"there are more than {TRIGGERS_MAX} triggers")
    digest = hashlib.sha256(content).hexdigest()
    return TriggerFile(digest, triggers, tuple(tables), tuple(faults))


def _parse(name: str, table: Any) -> Trigger | list[str]:
    if not _NAME.fullmatch(name):
        return ["a trigger is named with small letters, digits and `-`"]
    try:
        trigger = msgspec.convert(table, Trigger)
    except (msgspec.ValidationError, RecursionError) as error:
        return _field_faults(table) or [str(error)]
    return trigger_faults(trigger) or trigger


def _field_faults(table: Any) -> list[str]:
    """Return the faults of all settings: msgspec stops at the first one."""
    if not isinstance(table, dict):
        return []
    values = cast("dict[str, Any]", table)
    fields = {field.encode_name: field for field in msgspec.structs.fields(Trigger)}
    faults = [f"there is no setting `{name}`" for name in values if name not in fields]
    for name, field in fields.items():
        if name not in values:
            faults += [f"`{name}` is missing"] if field.required else []
            continue
        try:
            msgspec.convert(values[name], field.type)
        except (msgspec.ValidationError, RecursionError) as error:
            faults.append(f"`{name}`: {error}")
    return faults
