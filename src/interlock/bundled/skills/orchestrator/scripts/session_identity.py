#!/usr/bin/env python3
"""Show the record of a session: yours, or the one with this id (`interlock who`)."""

# pyright: basic
import argparse
import sys

sys.dont_write_bytecode = True  # uninstalling removes only the files that were installed
from interlock_call import call, finish  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
show = parser.add_subparsers(required=True, metavar="show").add_parser("show")
show.add_argument("id", nargs="?", help="like BlueLake-1735689600; default: yours")
wanted = parser.parse_args().id
report = call("who")[0]
own = report["identity"]
if own and wanted in (None, own["id"]):
    finish(own)
if wanted is None:
    finish({"error": "You are not registered", "hint": "Run `preflight.py detect` first."}, 1)
for record in report["active_sessions"]:
    if record["id"] == wanted:
        finish(record)
finish({"error": f"`{wanted}` is not here", "hint": "`interlock who` lists the sessions."}, 1)
