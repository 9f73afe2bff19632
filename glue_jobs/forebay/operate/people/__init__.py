"""The data of people: which fields hold it, what is kept of a person, and how it is erased everywhere.

* `personal` fields that look so      * `person` what the vault holds of one      * `outlook` what is kept of people
* `unseen` where more of them may be      * `landing` where their records came from
* `rewriting` whether an object there may be written again
* `erase` them, everywhere      * `erase_report` what became of it, signed
"""
