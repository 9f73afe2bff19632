"""The status page: one page of HTML, for `forebay report` and for the function that writes it by the clock.

It imports neither boto3 nor pyarrow, because a function on Lambda has no pyarrow.

* `content` what a page says, as plain values      * `rendering` makes HTML of it
* `pictures` its pictures, as SVG      * `style` its colours and its layout
"""
