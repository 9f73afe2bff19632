"""The command line: `forebay ...`. It reads arguments and shows answers; `operate` and the rooms above do the work.

* `start` imports `main`, which finds the command, and shows errors
* `examples` for `--help`      * `options` that several commands share
* `environment` the variables that are read
* `usage` mistakes on the command line, in one line      * `folder` what forebay.toml says
* `confirm` the question before a command changes something      * `interrupted` what Ctrl-C leaves to do
* `job_options` the options of a command that runs a job, made of its settings
* `show` how answers look      * `answer` the same as one JSON object      * `progress` how far a long command is

The commands, by what a person does:

* `looking` status, history, queries      * `changing` loads, replays, rolls back
* `people` finds and erases them      * `declaring` tables and their columns
"""
