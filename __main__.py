"""The Pulumi program: the stack's config is a locked recipe, and this deploys it."""

from sluicegate.components import deploy

deploy()
