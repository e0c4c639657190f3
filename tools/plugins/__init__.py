"""Stand-ins for the plugins of pulumi-random and pulumi-command, for machines that can't download the official ones.

They answer only the tokens this project uses, with the official inputs, outputs and state, so that a state made by one
can be carried on by the other; and only for stacks whose cloud is `local`.
"""
