"""A batch in one pass: each file is fetched once and parsed once, and the same tasks write the data files of all tables.

| module | what it knows |
| --- | --- |
| `landed` | the files that a task reads, by the numbers of their pieces |
| `routing` | which records of a block go to which table |
| `columns` | the columns of a table's rows |
| `rows` | the rows of one table in one task |
| `held` | the quarantine and the parked records |
| `vault` | the original values that go into the vault |
| `answers` | the answers of tasks: ends, counts, data files |
| `told` | the facts that all tasks get |
| `reader` | files in, records on their way out |
| `writer` | records in, data files out |
| `asking` | records on their way to declared SQL, and back with the answers |
| `gathering` | records on their way from the tasks that read to those that write |
| `task` | the tasks |
| `lean` | a pass in little memory |
| `jobs` | the Spark jobs that run the tasks |
| `driver` | the passes of a driver: answers of tasks in, a pass out |
| `outcome` | the pass, the reasons to read again, and files that wait because a batch has too many ids |
| `duplicates` | the pass without the rows that came before |

Everything here happens before the plan of the batch, so a pass that cannot be used is repeated (`attempt.seen`).
"""
