"""How an endpoint is measured. Knows a URL and a model name, never a stack; imports nothing of ours from outside.

The clock is `wire.Link`: bytes are stamped as they arrive (by the kernel where it offers that), cut into HTTP by
`http1.Response`, and read as server-sent events only when the answer is whole (`sse`, `measure`). One thread and one
selector (`loop.drive`) carry any number of requests, so that a busy client cannot make a server look slow.

Above the clock: `targets` and `openrouter` say whom to ask, `prompts` what, `run` in which order (the race) and `load`
how many at once. `stats` gives medians and percentiles with intervals that assume no distribution, `cost` money,
`results` the files and `shape` what they must hold, `table` the terminal, `report` the page; `options`, `entry` and the
`*_command` modules are what a shell sees.

What is not known is None, never 0, and a number that was not measured is not printed.
"""
