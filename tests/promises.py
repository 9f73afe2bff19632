"""Which tests prove which promise or feature with a real Spark job, in `make test`.

`tests/test_house.py` checks that each is there and not marked `deep`, `tests/cost.py` that it ran a Spark job. More tests
prove each of them; these are those that nobody may make slow, or take out, without naming another.
"""

from __future__ import annotations

JOURNEY, BATCH, SQL = "tests/journey", "tests/batch", "tests/declared_sql"
COMPACTION = "tests/upkeep/compaction/on_spark"

PROOFS: dict[str, tuple[str, ...]] = {
    "exactly once": (
        f"{JOURNEY}/test_happy_path.py::test_a_file_announced_twice_is_loaded_once",
        f"{BATCH}/test_crash_matrix.py::test_every_row_stands_once_by_the_plan_if_there_is_one_and_as_the_files_read_now_if_not",
        f"{BATCH}/test_replay.py::test_a_new_checkpoint_after_a_crash_between_table_and_ledger_doubles_nothing",
    ),
    "nothing is dropped silently": (f"{JOURNEY}/test_happy_path.py::test_nothing_is_dropped_silently",),
    "final means final": (f"{BATCH}/test_replay.py::test_a_batch_with_a_plan_needs_no_file_any_more",),
    "dirty data is kept": (
        f"{JOURNEY}/test_bad_input.py::test_every_bad_file_and_record_is_kept_with_its_reason_and_all_others_land",
    ),
    "no file stops the others": (
        f"{BATCH}/test_poison_in_spark.py"
        "::test_a_file_that_kills_its_worker_is_quarantined_alone_and_better_code_reads_it_when_it_is_retried",
    ),
    "no table stops the others": (
        "tests/table/test_fan_out.py::test_tables_that_cannot_be_written_do_not_stop_the_others",
        f"{JOURNEY}/test_retry.py::test_the_rows_of_a_table_that_failed_land_when_it_is_mended",
    ),
    "true values": (
        f"{JOURNEY}/test_bad_input.py::test_a_number_that_no_type_holds_is_kept_digit_by_digit",
        f"{SQL}/test_columns.py::test_what_cannot_be_computed_is_null_and_said_in_rescued",
    ),
    "writers are safe together": (
        "tests/chaos/test_crashes.py::test_a_commit_whose_answer_is_lost_stands_exactly_once",
        "tests/table/test_fan_out.py::test_what_others_commit_meanwhile_is_not_undone",
        f"{COMPACTION}/test_carry_out.py::test_rows_appended_while_a_partition_is_rewritten_stay",
    ),
    "readers are undisturbed": (
        "tests/table/test_fan_out.py::test_a_stream_of_the_table_sees_each_row_once_also_over_compaction",
        f"{BATCH}/test_streams.py"
        "::test_rows_that_replace_others_reach_a_stream_that_skips_removals_and_a_death_in_between_doubles_none",
        f"{COMPACTION}/test_maintain.py"
        "::test_what_was_the_newest_version_inside_the_window_is_kept_however_old_its_commit",
    ),
    "every reader": ("tests/table/test_fan_out.py::test_delta_rs_reads_the_same_rows",),
    "an operator can stop": (
        f"{JOURNEY}/test_command_line.py::test_forebay_stop_ends_a_continuous_run_from_elsewhere_after_its_batch",
    ),
    "pause": (f"{BATCH}/test_pause.py::test_a_version_that_is_to_be_replaced_stays_counted_in_a_paused_table",),
    "retry": (f"{JOURNEY}/test_retry.py::test_records_can_be_given_up_and_the_ledger_says_so",),
    "parked records": (f"{JOURNEY}/test_retry.py::test_parked_records_are_adopted_once_a_table_takes_them",),
    "replay": (
        f"{BATCH}/test_replayed_files.py"
        "::test_rows_stay_in_a_table_that_cannot_be_written_and_no_new_ones_wait_beside_them",
    ),
    "overwritten files": (f"{JOURNEY}/test_overwritten.py::test_appended_both_are_there",),
    "deleted files": (
        f"{BATCH}/test_deleted_files.py::test_rows_and_held_records_of_a_deleted_key_leave_once_and_come_back_with_it",
    ),
    "loaded files leave": (
        f"{JOURNEY}/test_after_load.py::test_loaded_files_move_to_the_archive_and_are_neither_missed_nor_loaded_again",
    ),
    "personal data": (
        f"{BATCH}/test_personal.py::test_what_is_personal_is_in_no_object_of_the_lake_and_every_record_is_counted",
        f"{BATCH}/test_vault.py::test_no_key_is_in_any_plan_event_setting_log_or_object",
    ),
    "erasure": (
        f"{COMPACTION}/test_maintain.py"
        "::test_rows_past_their_time_and_erased_persons_leave_where_delta_rs_is_not_installed",
    ),
    "many tables, one job": ("tests/table/test_fan_out.py::test_tables_with_different_partitions_share_one_job",),
    "skew": (f"{BATCH}/test_gathering.py::test_a_table_with_nearly_all_records_is_spread_over_the_tasks_that_write",),
    "new columns": ("tests/table/test_shaping.py::test_a_new_field_is_a_column_in_the_very_commit_that_brings_it",),
    "declared arrays and structs": (
        f"{BATCH}/test_nested_columns.py::test_spark_and_delta_rs_read_the_types_and_the_values",
    ),
    "declared columns in SQL": (f"{SQL}/test_references.py::test_a_check_sees_the_columns_of_its_own_table",),
    "routing": (
        f"{BATCH}/test_routing.py::test_sql_that_is_null_or_cannot_be_computed_leaves_the_record_to_the_next_table",
    ),
    "expectations": (
        f"{JOURNEY}/test_expectations.py"
        "::test_violations_are_counted_dropped_or_quarantined_and_a_table_with_too_many_fails",
    ),
    "duplicate records": (
        f"{BATCH}/test_many_tables.py::test_a_dozen_tables_that_leave_duplicates_out_and_check_rows_are_loaded",
    ),
    "formats": (f"{JOURNEY}/test_formats.py::test_the_same_records_are_the_same_rows_in_every_format",),
    "complete hours": (
        f"{JOURNEY}/test_complete.py::test_an_hour_is_complete_when_all_of_its_files_are_in_and_again_after_a_late_one",
    ),
    "settle": (
        f"{JOURNEY}/test_settle.py::test_a_field_is_promoted_to_a_column_of_its_own_and_every_value_is_accounted_for",
    ),
    "merges": ("tests/merge/test_random.py::test_whatever_happens_what_is_computed_equals_the_model",),
    "rollups": (
        "tests/merge/test_rollups.py"
        "::test_of_one_table_only_groups_that_changed_are_computed_also_where_files_are_written_again",
    ),
    "compaction": (
        f"{COMPACTION}/test_carry_out.py::test_rewrite_makes_the_declared_number_of_files_in_each_partition",
    ),
    "maintenance": (f"{COMPACTION}/test_maintain.py::test_a_log_that_grew_long_gets_a_checkpoint",),
    "the source alone": ("tests/source/test_source.py::test_availablenow_takes_one_batch_a_run_and_every_file_once",),
    "the source in a notebook": ("tests/source/test_contents.py::test_a_notebook_gets_rows_with_the_options_it_had",),
}
