"""The functions of this service. Each gets the typed columns of some rows, and returns the same rows in the same order."""

import pyarrow as pa
import pyarrow.compute as pc


def priced(rows: pa.Table) -> pa.Table:
    """`paid` is the number that `amount` writes, such as 1.299,00."""
    digits = pc.replace_substring(rows["amount"], ".", "")
    paid = pc.replace_substring(digits, ",", ".").cast(pa.decimal128(12, 2))
    refused = pc.if_else(pc.is_null(paid), "no amount", pa.scalar(None, pa.string()))
    return pa.table({"paid": paid, "_refused": refused})
