"""sluicegate: serve pinned open models on GPUs in your own account, deployed by Pulumi.

This folder is the import name only. Each room is a top-level folder of the repository and a link here, so that
`sluicegate.recipes` is found from a checkout, by the type checker, and in the wheel alike.
"""

__version__ = "0.1.0"
