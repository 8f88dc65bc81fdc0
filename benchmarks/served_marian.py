"""The Marian model of `benchmarks.marian` behind our server, at a free port.

python -m benchmarks.served_marian FOLDER
"""

import sys
from pathlib import Path

from benchmarks import marian, multi30k
from benchmarks.row import chosen


def main() -> None:
    from plainformer.cli.work import begin_work
    from plainformer.serve.app import Doors, application
    from plainformer.serve.house import house_of
    from plainformer.serve.server import address, bound, run

    folder = Path(sys.argv[1])
    begin_work()
    translator = marian.translator(multi30k.prepare(chosen(folder, "data"), folder).tokenizer)
    at = bound("127.0.0.1", 0)
    app = application(house_of({"marian": (translator, ("en", "de"))}), Doors())
    run(app, at, drain=5.0, ready=lambda: print(f"ready at {address(at)}", flush=True))


if __name__ == "__main__":
    main()
