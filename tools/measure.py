"""Runs a command and says what it took: wall time, CPU time, and the peak memory of all its processes together.

    python3 tools/measure.py make test

`/usr/bin/time -v` knows the largest process only. Here every process that descends from the command counts with its
share of the pages it has in common with others (PSS), looked at twice a second. Needs Linux; standard library only.
"""

import pathlib
import resource
import subprocess
import sys
import threading
import time

INTERVAL = 0.5  # seconds between two looks
PROC = pathlib.Path("/proc")


def parents():
    """Parent of every process that runs now."""
    found = {}
    for status in PROC.glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        found[int(status.parent.name)] = int(fields[1])
    return found


def family(root):
    """The process and all that descend from it."""
    children = {}
    for process, parent in parents().items():
        children.setdefault(parent, []).append(process)
    members, generation = [], [root]
    while generation:
        members += generation
        generation = [child for process in generation for child in children.get(process, [])]
    return members


def memory(process):
    """Proportional share of memory in MB; 0 for a process that ended."""
    try:
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


class Peak(threading.Thread):
    """The largest sum seen so far, and when and of how many processes."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.start_time, self.ended = root, time.monotonic(), threading.Event()
        self.megabytes, self.processes, self.after = 0.0, 0, 0.0

    def run(self):
        """Looks until the command has ended."""
        while not self.ended.wait(INTERVAL):
            shares = [memory(process) for process in family(self.root)]
            if sum(shares) > self.megabytes:
                self.megabytes, self.processes = sum(shares), sum(share > 0 for share in shares)
                self.after = time.monotonic() - self.start_time


def main(*command):
    """Runs the command, reports on standard error, and ends with the command's exit code."""
    if not command:
        sys.exit(__doc__)
    start = time.monotonic()
    process = subprocess.Popen(command)
    peak = Peak(process.pid)
    peak.start()
    code = process.wait()
    peak.ended.set()
    peak.join()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stderr.write(
        f"wall time    {time.monotonic() - start:8.1f} s\n"
        f"CPU time     {used.ru_utime + used.ru_stime:8.1f} s, {used.ru_stime:.1f} of it in the kernel\n"
        f"peak memory  {peak.megabytes:8.0f} MB in {peak.processes} processes, after {peak.after:.0f} s\n"
        f"largest one  {used.ru_maxrss / 1024:8.0f} MB\n"
    )
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
