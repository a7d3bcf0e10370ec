"""`interlock mcp`: the server that an agent client starts."""

import signal
import sys

from interlock.app.context import open_app
from interlock.app.failures import StoreFailure
from interlock.app.home import data_home
from interlock.mcp.stdio import serve as serve_stdio


def serve() -> int:
    """Serve until the client closes its end. A client shows stderr when this fails."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # die at once: an append is whole or not at all
    try:
        app = open_app(data_home())
    except StoreFailure as failure:
        print(f"error: {failure}\n\nhint: {failure.hint}", file=sys.stderr)
        return 1
    serve_stdio(app)
    app.close()
    return 0
