"""What runs on the machine: a program of its own, Python >= 3.10, standard library only.

One folder a stack holds immutable releases, each named by its lock; `prepare` fills one, `activate` makes it serve
or puts the old one back, both as detached jobs that finish without anyone watching. Every long-lived process (the
engine, the front) is the child of one `supervise` process, and dies with it: there is never an engine without an
owner. The engine listens on a Unix socket of its release; the front's only upstream is the link `current.sock`.
"""
