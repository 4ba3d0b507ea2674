"""Cuts the power of an operation wherever it may matter, and has each state that is left recovered by one pass.

`python power_cuts.py NAME FOLDER MOST [EVERY [SEED]]` wants what `operations.prepare` has made in FOLDER. It records
the operation once, undisturbed, takes up to MOST states of every cut (of each EVERY-th, the last one first), and prints
a JSON line for each state that it has not seen before: the cut, whether the caller had been answered, what the pass
made of it, and what is wrong: nothing is an empty list. The last line says how many cuts and steps there were.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
from contextlib import redirect_stdout
from pathlib import Path

import operations
from powerloss import Sync, cuts, states
from recovery import Bench, versions, wanted

MOST = 60  # states of one cut
NAMES = list(operations.OPERATIONS)


def main() -> int:
    """See the module."""
    name, folder, most = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    every, seed = map(int, (sys.argv[4:] + ["1", "7"][len(sys.argv) - 4 :])[:2])
    # A process leaves to the kernel what it has written: nothing here depends on the disk below.
    os.fsync = os.fdatasync = lambda descriptor: None
    operation = operations.OPERATIONS[name]
    bench = Bench(folder, operation.scenario(operation.prepared(folder)))
    with redirect_stdout(io.StringIO()):
        aim = wanted(bench)
    record = bench.recorded()
    aim["whole"] = versions(record)
    chance = random.Random(seed)
    seen: set[tuple[str, bool]] = set()
    known: set[str] = set()
    every_cut = list(cuts(record))
    for cut in every_cut[::-every]:
        for image in states(cut, most, chance):
            key = image.digest(), cut.answered
            if key in seen:
                continue
            seen.add(key)
            bench.put(image)
            line = {"cut": cut.at, "loose": len(cut.loose), "answered": cut.answered}
            print(json.dumps(line | bench.judged(cut.answered, aim, known)), flush=True)
    syncs = sum(isinstance(step, Sync) for step in record.steps)
    print(json.dumps({"cuts": len(every_cut), "steps": len(record.steps), "syncs": syncs}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
