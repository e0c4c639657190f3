"""`sluicegate report`: a page from stored results, so that no number need be measured again to be shown."""

from __future__ import annotations

from argparse import Namespace

from .options import check_html
from .report import write_page
from .results import load


def run_report(args: Namespace) -> int:
    """Write the page; 0. Raises ValueError for a file that is no result, OSError for one that cannot be read."""
    check_html()
    documents = [load(path) for path in args.results]
    try:
        write_page(args.html, documents)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{' or '.join(map(str, args.results))}: not a whole result: {error}") from error
    return 0
