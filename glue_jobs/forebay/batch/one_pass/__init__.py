"""A batch in one pass: each file is fetched once and parsed once, and the same tasks write the data files of all tables.

The order is that of the imports. Each module uses only modules that come after it:

| module | what it knows |
| --- | --- |
| `driver` | the driver's side of a pass: files in, a `Pass` out |
| `duplicates` | the pass without the rows that came before |
| `outcome` | the pass, the reasons to read again, and files that wait because a batch has too many ids |
| `jobs` | the Spark jobs that run the tasks |
| `lean` | a pass in little memory |
| `task` | the tasks |
| `writer` | records in, data files out |
| `reader` | files in, records on their way out |
| `asking` | records on their way to declared SQL, and back with the answers |
| `gathering` | records on their way from the tasks that read to those that write |
| `vault` | the original values that go into the vault |
| `held` | the quarantine and the parked records |
| `rows` | the rows of one table in one task |
| `routing` | which records of a block go to which table |
| `columns` | the columns of a table's rows |
| `answers` | the answers of tasks: ends, counts, data files |
| `spec` | what all tasks of a pass get |
| `landed` | the files that a task reads, by the numbers of their pieces |

Everything here happens before the plan of the batch, so a pass that cannot be used is repeated (`attempt.seen`).
"""
