"""Run `interlock` for the process that runs the tests, which counts as a person's.

An agent may run the tests. So the server sees neither who started them nor their variables.
"""

import os

from interlock.app.callers import agent_detection
from interlock.cli.main import main
from interlock.workspace.machine import processes
from interlock.workspace.machine.processes import Process

TESTS = os.getppid()
ANCESTORS, VARIABLES = agent_detection.ancestors, processes.environment_of
INHERITED = VARIABLES(TESTS)


def ancestors_in_tests(pid: int) -> list[Process]:
    lineage = ANCESTORS(pid)
    pids = [pid, *(process.pid for process in lineage)]
    return lineage[: pids.index(TESTS)] if TESTS in pids else lineage


def own_variables(pid: int) -> dict[str, str]:
    return {k: v for k, v in VARIABLES(pid).items() if INHERITED.get(k) != v}


if __name__ == "__main__":
    agent_detection.ancestors = ancestors_in_tests
    processes.environment_of = own_variables
    main()
