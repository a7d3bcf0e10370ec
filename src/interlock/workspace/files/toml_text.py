"""Read TOML that is not trusted: it may come with a clone."""

import re
from typing import Any

KEY_PARTS_MAX = 50
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:\.[ \t]*+{_PART}[ \t]*+){{{KEY_PARTS_MAX}}}")


def parse_toml(content: bytes) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        ValueError: it is not TOML.
        RecursionError: it is nested too deeply.
    """
    import tomllib  # noqa: PLC0415 (5 ms, and most files are not there)

    text = content.decode("utf-8")
    # The parser needs memory by the square of the parts of a key: 1 GB for 32 KB of `a.a.a…`.
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {KEY_PARTS_MAX} parts")
    return tomllib.loads(text)
