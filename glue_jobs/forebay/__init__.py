"""forebay: JSON files that land in S3 become Delta tables, minutes later, exactly once, nothing lost.

The map, in the order of the journey. A room imports only from rooms above it, and its own docstring maps its modules.

| room | what enters | what leaves |
| --- | --- | --- |
| `errors`, `events`, `address`, `landed_file`, `nesting`, `counted`, `plain`, `remembered` | | the words of all rooms |
| `threads` | a question, and many things | their answers |
| `transforms` | the name of a function | the function, of those that came with the deployment |
| `texts` | texts in one Arrow array | their bytes, pieces of them, and what a JSON parser reads |
| `refusal` | what pydantic refuses | problems, in the words of a file of TOML |
| `spark` | settings | a session, its workers, and the pinned versions |
| `aws` | the environment | clients, metrics, and checks of what they reach |
| `lake` | the address of a lake | its objects, leases, health and table logs |
| `capacity` | arrivals, and a freshness | when runs start and end |
| `settings` | arguments | the checked settings of a job |
| `declaration` | TOML | a service, its tables and their columns |
| `privacy` | the text of a record | the same, with its personal fields treated |
| `notification` | the body of a message | the files that it names |
| `content` | files | their records, one by one |
| `record` | records, as text | their values in a table's columns, and the columns it should get |
| `source` | an SQS queue | `format("s3-sqs")`: a stream of file names |
| `ledger` | files | which of them are new, and what became of each |
| `table` | rows for many tables | one commit per table, each exactly once |
| `declared_sql` | SQL of a declaration | what is wrong with it, before the first record, and how Spark answers it |
| `batch` | file names | rows in tables, and the ledger's entries |
| `upkeep` | small, old or missed files | compact, tidy and complete tables |
| `merge` | changes | the current state of what they are about |
| `jobs` | settings | the ingest job |
| `operate` | an operator's question | an answer |
| `cli` | a command line | text on a terminal |

Beside this package lies `forebay_local`: the twin of the deployed service on one machine, and data to feed it. It is never
shipped to AWS.
"""
