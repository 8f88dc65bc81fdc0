"""The process of one contestant: sets up, warms up, then does one unit of work whenever it is told to.

python -m benchmarks.worker MODULE CASE CONTESTANT FOLDER THREADS
"""

import importlib
import json
import os
import sys
from pathlib import Path


def main() -> None:
    module, case, name, folder, threads = sys.argv[1:]
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    turn, facts = importlib.import_module(f"benchmarks.{module}").set_up(case, name, Path(folder), int(threads))
    for _ in range(facts.get("warm_up", 2)):
        turn()
    print(json.dumps(facts), file=answers, flush=True)
    for _ in sys.stdin:
        found = turn()
        cost, notes = found if isinstance(found, tuple) else (found, {})
        print(json.dumps({"cost": cost, "notes": notes}), file=answers, flush=True)


if __name__ == "__main__":
    main()
