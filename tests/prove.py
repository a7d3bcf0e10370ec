"""`make prove`: put each fault into a copy of the code and require that its tests notice.

python -m tests.prove [ID …]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FAULTS = sorted((ROOT / "tests" / "faults").glob("*.toml"))


class Fault(NamedTuple):
    invariant: str
    source: Path
    old: str
    new: str


def load(path: Path) -> Fault:
    described = tomllib.loads(path.read_text(encoding="utf-8"))
    return Fault(path.stem, ROOT / described["file"], described["old"], described["new"])


def is_noticed(fault: Fault) -> bool:
    """Whether a test of the fault's invariant fails on code that has the fault."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        target = copy / fault.source.relative_to(ROOT / "src")
        text = target.read_text(encoding="utf-8")
        assert text.count(fault.old) == 1, f"{fault.invariant}: the code has moved on"
        target.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "--invariant", fault.invariant],
            cwd=ROOT,
            # Before the installed package, also in the processes that the tests start.
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            check=False,
        )
    if done.returncode not in (0, 1):
        sys.exit(f"{fault.invariant}: {done.stdout.decode()}{done.stderr.decode()}")
    return done.returncode == 1


def main(chosen: list[str]) -> int:
    faults = [load(path) for path in FAULTS if not chosen or path.stem in chosen]
    missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for fault, noticed in zip(faults, pool.map(is_noticed, faults), strict=True):
            print(f"{'noticed' if noticed else 'NOT NOTICED':12} {fault.invariant}", flush=True)
            missed += not noticed
    print(f"{len(faults) - missed} of {len(faults)} faults noticed")
    return 1 if missed or not faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
