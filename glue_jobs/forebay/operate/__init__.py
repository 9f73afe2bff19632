"""An operator's work: checks accounts and tables, tries things out, and fixes them. The command line only shows it.

* `lake_view` answers from the lake, without a JVM      * `named_lake` that of a command, if it is one

The other rooms, by what a person does. Each imports from these two and from the rooms above it:

* `page` how it is going, as HTML      * `stack` a deployment, its runs and alarms, as AWS reports them
* `looking` at files, tables, queues and records      * `changing` what was loaded: replay, forget, roll back
* `people` find what is kept of them, and erase them      * `exporting` what changed in a table, for other tools
* `trying` declarations on sample files      * `declaring` tables and their columns
* `doctor` can the deployed service work?
"""
