"""Compile foreign regular expressions for an engine that runs them in linear time."""

import importlib
from typing import Any

_SIZING_MEMORY = 128 * 1024  # so little that a pattern which is far too large is refused at once


def compile_pattern(
    pattern: str, flags: str = "", memory: int = 2 * 1024 * 1024, *, has_groups: bool = False
) -> Any:
    """Return the compiled pattern, of an engine that comes without types.

    Raises:
        ValueError: it cannot be searched for in linear time, or is too large.
    """
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = not has_groups  # groups prevent its fast path
    options.max_mem = memory  # of each pattern; the last 128 are kept
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None


def pattern_size(pattern: str, flags: str = "") -> int:
    """Return the number of instructions that the pattern compiles to.

    Raises:
        ValueError: as above.
    """
    return compile_pattern(pattern, flags, _SIZING_MEMORY).programsize
