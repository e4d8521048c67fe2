"""Stands for Slurm's srun, on one machine that counts as several: `fake_srun.py [--option ...] COMMAND`.

Takes from the environment what sbatch sets, starts the tasks with what srun sets for each, and ends
with the exit code of the first that fails; then the others are ended too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time


def main() -> int:
    words = sys.argv[1:]
    while words[0].startswith("-"):
        words = words[1:]
    nodes, tasks = int(os.environ["SLURM_NNODES"]), int(os.environ["SLURM_NTASKS"])
    here = tasks // nodes
    running = [
        subprocess.Popen(
            words,
            env={
                **os.environ,
                "SLURM_STEP_ID": "0",
                "SLURM_STEP_NODELIST": "localhost",
                "SLURM_STEP_NUM_NODES": str(nodes),
                "SLURM_STEP_NUM_TASKS": str(tasks),
                "SLURM_STEP_TASKS_PER_NODE": f"{here}(x{nodes})",
                "SLURM_PROCID": str(number),
                "SLURM_LOCALID": str(number % here),
                "SLURM_NODEID": str(number // here),
            },
        )
        for number in range(tasks)
    ]
    while True:
        codes = [each.poll() for each in running]
        failed = [code for code in codes if code]
        if failed:
            for each in running:
                each.terminate()
        if failed or None not in codes:
            for each in running:
                each.wait()
            return failed[0] if failed else 0
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
