"""What an operator does: look at the accounts and the tables, try everything out, mend things. The command line only
shows it.

* `lake_view` answers from the lake without a JVM      * `accounts` do the numbers add up?      * `demo` the whole story
"""
