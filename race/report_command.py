"""`sluicegate report`: a page from stored results, so that no number need be measured again to be shown."""

from __future__ import annotations

from argparse import Namespace

from .options import check_html
from .report import write_page
from .results import load


def run_report(args: Namespace) -> int:
    """Write the page; 0. Raises ValueError for a file that is no result, OSError for one that cannot be read."""
    check_html()
    if args.html.exists() and any(path.exists() and path.samefile(args.html) for path in args.results):
        raise ValueError(f"{args.html} is one of the results: --html names another file")
    documents = [load(path) for path in args.results]
    write_page(args.html, documents)
    return 0
