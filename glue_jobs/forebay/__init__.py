"""forebay: JSON files that land in S3 become Delta tables, minutes later, exactly once, nothing lost.

The map of the rooms, in the order of the journey; a room imports only from those before it:

| room | what enters | what leaves |
| --- | --- | --- |
| `runtime`, `errors`, `events`, `landed_file`, `settings` | | words |
| `aws`, `cloudwatch`, `spark`, `python_worker` | | clients, metrics, sessions, and their workers |
| `column`, `declared_table`, `schedule`, `service` | TOML | declarations |
| `notification` | the body of a message | the files it names |
| `content` | files | their records, one by one |
| `file` | an SQS queue | `format("s3-sqs")`: a stream of file names |
| `ledger` | files | which of them are new, and what became of each |
| `record` | records, as text | their values in a table's columns, and what columns it should get |
| `table` | rows for many tables | one commit a table, each exactly once |
| `table_log` | the place of a table | what it consists of, without Spark |
| `batch` | file names | rows in tables, and the ledger's entries |
| `compaction` | small files | large ones |
| `maintenance` | tables | without what nobody needs any more |
| `reconcile` | a bucket, and the ledger | notices of files that S3 told nobody of |
| `ingest` | settings | the job |
| `operate`, `cli` | an operator's question | an answer |

Beside the journey: `objects` (bytes by name, in S3 or a folder), `lake` (may we write there safely?), `lease` (one driver at
a time), `announce` (notices into a queue), `stop` and `signals` (how a job is asked to end), `health` (how tables are, in small
objects), `preflight` (does what we were told exist?), `twin` (the deployed service on this machine), `feed` and `fabricate`
(believable telemetry, and hostile notifications).
"""
