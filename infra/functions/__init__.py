"""The Lambda functions, each with its settings and rights in one place.

`function` makes one, with its role and its log, from code that all share; `each` has the settings and rights of each.
"""
