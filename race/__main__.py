"""`python -m sluicegate.race`: race, load and report without the rest of sluicegate."""

from __future__ import annotations

import argparse
import sys


def main() -> int:
    """Run one subcommand; returns the exit code."""
    try:  # the imports take a tenth of a second, in which a ^C is as good as later
        from .entry import guarded
        from .load_command import run_load
        from .options import add_load, add_race, add_report
        from .race_command import run_race
        from .report_command import run_report
    except KeyboardInterrupt:
        return 130
    parser = argparse.ArgumentParser(prog="python -m sluicegate.race", description="Measured speed of any endpoint.")
    subparsers = parser.add_subparsers(required=True, metavar="race | load | report")
    race = subparsers.add_parser("race", help="one request at a time against any number of endpoints")
    add_race(race)
    race.set_defaults(run=run_race)
    load = subparsers.add_parser("load", help="many requests at once against one endpoint")
    add_load(load)
    load.set_defaults(run=run_load)
    report = subparsers.add_parser("report", help="a page from results of race and load")
    add_report(report)
    report.set_defaults(run=run_report)
    args = parser.parse_args()
    return guarded(args.run, args)


if __name__ == "__main__":
    sys.exit(main())
