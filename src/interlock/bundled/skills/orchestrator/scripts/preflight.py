#!/usr/bin/env python3
"""Register this session, and check for conflicts with the others (`interlock preflight`).

Exit codes: 0 continue, 4 the user must choose, 5 halted, 1 refused, 2 misuse, 3 a bug.
"""

# pyright: basic
import argparse
import sys

sys.dont_write_bytecode = True  # uninstalling removes only the files that were installed
from interlock_call import call, finish  # noqa: E402

OPTIONS = {"track": "track", "files": "path", "beads": "item", "ignore": "ignore"}

parser = argparse.ArgumentParser(description=__doc__)
detect = parser.add_subparsers(required=True, metavar="detect").add_parser("detect")
detect.add_argument("--track", action="append", help="the line of work")
for name, what in (("files", "PATTERN"), ("beads", "ID"), ("ignore", "SESSION")):
    detect.add_argument(f"--{name}", nargs="+", action="extend", metavar=what)
given = vars(parser.parse_args())
words = [f"--{OPTIONS[name]}={value}" for name in OPTIONS for value in given[name] or ()]
finish(*call("preflight", *words))
