"""Examples for `--help`, by command: the command line, and its effect. A test runs each through the parser."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("forebay ingest --drain", "load what is in the queue, then end"),
        ("forebay audit", "does everything add up?"),
    ),
    "ingest": (
        ("forebay ingest --lake s3://studio-lake", "keep running; FOREBAY_QUEUE_URL names the queue"),
        ("forebay ingest --service ./my-service --drain", "load what is in the queue, then end"),
    ),
    "stop": (
        ("forebay stop", "ask the job to stop, and wait"),
        ("forebay stop --wait-s 0", "ask the job, and do not wait"),
    ),
    "status": (
        ("forebay status", "the state now"),
        ("forebay status --stack forebay-prod --tables", "with alarms, failed runs, cost, and every table's lag"),
        ("forebay status --watch", "a live view"),
        ("forebay status --json", "as JSON"),
    ),
    "doctor": (
        ("forebay doctor --stack forebay-prod --before", "the account, before the first deployment"),
        ("forebay doctor --stack forebay-prod", "the deployment; reads only"),
        ("forebay doctor --stack forebay-prod --probe", "send one object through the whole service"),
        ("forebay doctor --stack forebay-prod --rights", "the policy that the command needs"),
    ),
    "report": (
        ("forebay report", "the last two days, into forebay-report.html"),
        ("forebay report --hours 168 --out week.html", "a week"),
        ("forebay report --stack forebay-prod", "with runs of jobs, alarms and cost"),
    ),
    "export": (
        (
            "forebay export players --to s3://other/feed --service ./my-service",
            "the whole table, then each change since",
        ),
        (
            "forebay export players --to ./feed --since 2026-05-01T12:00 --format json",
            "only the changes since a time",
        ),
    ),
    "tail": (
        ("forebay tail", "the last ten files, then each new one"),
        ("forebay tail --outcome unreadable --json", "what cannot be read, as JSON"),
    ),
    "history": (
        ("forebay history", "the last day: batches, and what operators did"),
        ("forebay history --days 7 --table alpha", "with changes to a table"),
        ("forebay history --all-tables --stack forebay-prod", "with deployments and alarms, and all tables"),
    ),
    "lineage": (
        ("forebay lineage", "the batches of the last day, as NDJSON"),
        ("forebay lineage --to http://marquez:5000/api/v1/lineage --since 2026-05-01", "send them"),
    ),
    "query": (
        ("forebay query 'select outcome, count(*) from ledger group by outcome'", "the ledger"),
        ("forebay query 'select * from alpha limit 10' --json", "a table, as JSON"),
    ),
    "queue": (("forebay queue dlq", "the dead letters, with the reason for each"),),
    "queue peek": (("forebay queue peek --limit 3", "which files wait"),),
    "queue dlq": (
        ("forebay queue dlq", "the dead letters, with the reason for each"),
        ("forebay queue dlq --drop", "shows those that announce nothing, and asks whether to delete them"),
        ("forebay queue dlq --json", "as JSON"),
    ),
    "queue redrive": (
        ("forebay queue redrive --key 'in/alpha/*' --dry-run", "what would be sent back"),
        ("forebay queue redrive --all", "shows them, and asks"),
    ),
    "queue refused": (
        ("forebay queue refused", "messages that forebay could not understand, and why"),
        ("forebay queue refused --drop", "shows them, and asks"),
    ),
    "lease": (("forebay lease show", "which job works on the lake"),),
    "privacy": (("forebay privacy scan alpha", "which fields look personal?"),),
    "privacy scan": (
        ("forebay privacy scan alpha", "which fields look personal?"),
        ("forebay privacy scan parked --rows 1000 --json", "as JSON"),
    ),
    "privacy erase": (
        ("forebay privacy erase 4711 --service ./my-service --dry-run", "the number of rows in each table"),
        ("forebay privacy erase --from people.txt --service ./my-service", "thousands at once; asks first"),
        ("forebay privacy erase --service ./my-service --now", "finish what is left, and delete old files at once"),
    ),
    "privacy report": (
        ("forebay privacy report 3 --service ./my-service", "what was erased, and when the files are deleted"),
    ),
    "privacy secret": (("forebay privacy secret s3://studio-secrets/forebay-tokens", "once, before the first token"),),
    "privacy show": (
        ("forebay privacy show user-4711", "what do we store about this person?"),
        ("forebay privacy show tok_abc --json", "by the token, as JSON"),
    ),
    "privacy rotate": (("forebay privacy rotate", "after the vault's key was rotated"),),
    "lease show": (("forebay lease show", "who holds them"),),
    "lease break": (("forebay lease break", "shows who holds it, and asks"),),
    "wait": (
        ("forebay wait clicks --until 2026-05-01T10:00 --timeout 30m", "are all files of 09:00 to 10:00 in?"),
        ("forebay wait sales --until 2026-05-02 --since 2026-05-01", "each hour of a day, for all feeds of a table"),
    ),
    "where": (
        ("forebay where s3://studio-drops/in/a.json", "when it was loaded, and into which tables"),
        ("forebay where 7f3a --row alpha --by event_id", "which file brought this row"),
        ("forebay where 7f3a --row alpha --text", "the record of this row, as the landed file has it"),
    ),
    "files": (("forebay files list --outcome unreadable", "what could not be read"),),
    "files list": (
        ("forebay files list --outcome unreadable", "what could not be read"),
        ("forebay files list --key 'in/alpha/*' --since 2026-05-01 --json", "by key and day, as JSON"),
    ),
    "files retry": (
        ("forebay files retry", "after a permission was added"),
        ("forebay files retry --key 'in/alpha/*' --dry-run", "only list them"),
        ("forebay files retry --forgotten --key in/a.json", "bring back what was forgotten"),
    ),
    "files forget": (
        ("forebay files forget s3://studio-drops/in/a.json", "shows the rows to remove, and asks"),
        ("forebay files forget 's3://studio-drops/in/test-*' --dry-run", "only show it"),
    ),
    "files skip": (("forebay files skip s3://studio-drops/in/a.json", "read no version of it"),),
    "files show": (("forebay files show s3://studio-drops/in/a.json", "everything that the ledger says"),),
    "pause": (
        ("forebay pause alpha beta", "their rows wait, from the next batch on"),
        ("forebay pause all", "files are read and counted, but no table is written"),
    ),
    "resume": (
        ("forebay resume alpha --service ./my-service", "loads the rows that waited"),
        ("forebay resume all --dry-run", "how much waits"),
    ),
    "replay": (
        ("forebay replay --table alpha --since 2026-05-01 --dry-run", "which rows would be replaced"),
        ("forebay replay --quarantined --batch 812", "files of a batch with refused records; shows them, and asks"),
        ("forebay replay --resume", "continue after an interruption"),
    ),
    "replay-into": (
        ("forebay replay-into s3://lake-of-tests --table alpha --service ./new", "what new declarations do with them"),
    ),
    "rollback": (
        ("forebay rollback alpha --to 41 --dry-run", "which rows would be removed"),
        ("forebay rollback alpha beta --to 2026-05-01T12:00 --and-replay", "both tables, and read their files again"),
    ),
    "audit": (
        ("forebay audit --lake s3://studio-lake", "count everything twice"),
        ("forebay audit --json", "as JSON"),
    ),
    "tables": (
        ("forebay tables --lake s3://studio-lake", "which tables exist"),
        ("forebay tables check ./my-service", "everything that is wrong with the declarations"),
    ),
    "tables list": (("forebay tables list --lake s3://studio-lake", "rows, files, bytes and the newest event"),),
    "tables init": (
        ("forebay tables init ./my-service", "begin with the built-in example"),
        ("forebay tables init ./my-service --from samples/", "begin with a draft that these samples fit"),
    ),
    "tables check": (
        ("forebay tables check ./my-service", "the declarations alone"),
        ("forebay tables check ./my-service --lake s3://studio-lake", "and how the tables differ from them"),
    ),
    "tables show": (("forebay tables show purchases --service ./my-service", "defaults included"),),
    "tables diff": (("forebay tables diff ./my-service s3://studio-lake/declarations", "what a push would change"),),
    "tables push": (("forebay tables push ./my-service s3://studio-lake/declarations", "running jobs adopt it"),),
    "tables add": (("forebay tables add ./my-service crashes --where event=crash", "write tables/crashes.toml"),),
    "tables editor-schema": (("forebay tables editor-schema --into ./my-service", "schemas for your editor"),),
    "tables drop": (
        ("forebay tables drop alpha --dry-run", "what would go"),
        ("forebay tables drop alpha --catalog forebay_prod", "the table, and its entry in the Glue Data Catalog"),
    ),
    "tables health": (
        ("forebay tables health", "all tables"),
        ("forebay tables health alpha --json", "one table, as JSON"),
    ),
    "try": (
        ("forebay try samples/ --service ./my-service", "what would happen to these files"),
        ("forebay try samples/ --service ./new --against ./old", "what new declarations change"),
    ),
    "schema": (("forebay schema show alpha", "columns and types"),),
    "schema show": (("forebay schema show alpha", "columns, types and the keys that they are read from"),),
    "schema history": (("forebay schema history alpha", "what each version changed"),),
    "schema diff": (("forebay schema diff alpha --from 3 --to 7", "between two versions"),),
    "schema settle": (("forebay schema settle alpha --service ./my-service", "rewrite the table with the best types"),),
    "schema promote": (("forebay schema promote alpha player.since --type timestamp", "give a field its own column"),),
    "plan-capacity": (
        ("forebay plan-capacity", "1 min, 5 min and 30 min, by the arrivals of the last 30 days"),
        ("forebay plan-capacity --freshness '10 min' --budget-usd-month 100 --days 7", "one choice, within a budget"),
    ),
    "quality": (("forebay quality alpha --days 7", "the last week"), ("forebay quality --json", "as JSON")),
    "quarantine": (("forebay quarantine list", "how much, and why"),),
    "quarantine list": (("forebay quarantine list --lake s3://studio-lake", "how many records, by table and reason"),),
    "quarantine show": (("forebay quarantine show --reason not-json --limit 5", "the newest five"),),
    "quarantine retry": (("forebay quarantine retry --table alpha --service ./my-service", "after a fix"),),
    "quarantine drop": (("forebay quarantine drop --reason not-json", "asks first"),),
    "parked": (("forebay parked list --by event", "records that no table wanted"),),
    "parked list": (("forebay parked list --by event", "by the values of a field"),),
    "parked show": (("forebay parked show --limit 5", "the newest five"),),
    "parked drop": (("forebay parked drop --service ./my-service", "asks first"),),
    "parked adopt": (("forebay parked adopt purchases --service ./my-service", "once a table accepts them"),),
    "compact": (
        ("forebay compact --dry-run", "what would be done, why, and at what cost"),
        ("forebay compact alpha --now", "one table, ignoring thresholds"),
    ),
    "merge": (
        ("forebay merge", "all states that are behind"),
        ("forebay merge players --json", "one table, as JSON"),
    ),
    "maintain": (
        ("forebay maintain", "every day"),
        ("forebay maintain --vacuum full", "weekly: also lists files that no log names"),
    ),
    "find-missed": (("forebay find-missed --landing s3://studio-drops/in/ --dry-run", "only list them"),),
    "backfill": (
        ("forebay backfill s3://studio-drops/in/ --since 2024-01-01 --dry-run", "how many files there are"),
        (
            "forebay backfill s3://studio-drops/in/ --since 2024-01-01 --rate 200",
            "200 files a second; continues after Ctrl-C",
        ),
    ),
    "demo": (("forebay demo --files 50", "a shorter demo"),),
    "local": (("forebay local up", "start it"), ("forebay local down", "stop it, and delete its contents")),
    "local up": (("forebay local up --port 5000", "at a port that you choose"),),
    "local env": (('eval "$(forebay local env)"', "from now on, every command uses it"),),
    "local status": (("forebay local status", "what it contains"),),
    "local down": (("forebay local down", "stop it, and delete its contents"),),
    "local feed": (("forebay local feed --files 500 --chaos", "files, and faults"),),
    "local put": (("forebay local put samples/", "files of your own"),),
    "local fire": (("forebay local fire", "list the schedules"), ("forebay local fire start-ingest", "run one")),
    "local alarms": (("forebay local alarms --dry-run", "which alarms ring, and what they would do"),),
    "local runs": (("forebay local runs", "the result of each run, and where its log is"),),
}


def examples(command: str) -> str:
    """The text that click shows at the end of a command's help, line by line."""
    assert command in EXAMPLES, f"write an example of `forebay {command}` into EXAMPLES"
    lines = [f"  $ {typed}\n      {does}" for typed, does in EXAMPLES[command]]
    return "\b\nExamples:\n" + "\n".join(lines)
