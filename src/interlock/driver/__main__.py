"""`python -m interlock.driver`: what a server starts. People say `interlock driver run`."""

import logging
import sys

from interlock.app.data_home import data_home
from interlock.app.failures import SettingsBroken, StoreFailure
from interlock.driver.process import serve_driver

EXIT_REFUSED = 1


def main() -> int:
    """Be the driver of this machine until a signal; the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        return serve_driver(data_home())
    except (SettingsBroken, StoreFailure) as failure:
        sys.stderr.write(f"error: {failure}\n")
        return EXIT_REFUSED


if __name__ == "__main__":
    sys.exit(main())
