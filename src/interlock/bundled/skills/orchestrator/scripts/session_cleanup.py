#!/usr/bin/env python3
"""List stale sessions (`interlock who`), or take one over (`interlock takeover`).

Exit codes: 0 done, 4 its uncommitted work could not be saved, 1 refused, 2 misuse, 3 a bug.
"""

# pyright: basic
import argparse
import sys

sys.dont_write_bytecode = True  # uninstalling removes only the files that were installed
from interlock_call import call, finish  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
verbs = parser.add_subparsers(required=True, dest="verb")
verbs.add_parser("find-stale")
takeover = verbs.add_parser("takeover")
takeover.add_argument("id", help="like BlueLake-1735689600")
takeover.add_argument("--why", default="", help="kept in the log, and shown to the agent")
takeover.add_argument("--without-snapshot", action="append_const", const="--without-snapshot")
given = parser.parse_args()
if given.verb == "find-stale":
    stale = call("who")[0]["stale_sessions"]
    finish({"stale_sessions": stale, "count": len(stale)})
flags = given.without_snapshot or []
finish(*call("takeover", f"--why={given.why}", *flags, "--", given.id))
