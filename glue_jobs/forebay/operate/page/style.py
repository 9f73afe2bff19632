"""The style of a page: light or dark like the reader's theme, and for all widths from a phone up."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif;
  --bad: #c62828; --good: #2e7d32; --ink: #1565c0; --box: #f4f6f8; --edge: #d5dae0 }
@media (prefers-color-scheme: dark) {
  :root { --bad: #ff8a80; --good: #81c784; --ink: #90caf9; --box: #1c2126; --edge: #3a424b } }
body { max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem } p { margin: .2rem 0 }
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem } h2 .quiet { font-weight: 400 }
dt, th, .quiet { opacity: .7 } .bad { color: var(--bad); font-weight: 600 } .good { color: var(--good) }
.verdict { border-left: .4rem solid var(--good); padding: .5rem 0 .5rem .9rem; margin: 1rem 0; font-size: 1.1rem }
.verdict.bad { border-color: var(--bad); color: inherit; font-weight: 400 }
.verdict b { display: block; font-size: 1.4rem; color: var(--good) } .verdict.bad b { color: var(--bad) }
ul { margin: .3rem 0; padding-left: 1.2rem; overflow-wrap: anywhere }
ol.journey { list-style: none; display: flex; gap: 1.6rem; margin: 0; padding: 0 }
ol.journey li { flex: 1 1 0; min-width: 0; position: relative; padding: .5rem .7rem;
  background: var(--box); border: 1px solid var(--edge); border-radius: .5rem }
ol.journey li + li::before { content: "\\2192"; position: absolute; left: -1.3rem; top: 50%;
  transform: translateY(-50%); opacity: .6 }
ol.journey li.apart::before { visibility: hidden }
ol.journey b { display: block; font-size: 1.4rem; line-height: 1.3; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums }
ol.journey .quiet { display: block; font-size: .85rem; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .8rem 1rem; margin: 1rem 0 0 }
dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.charts h2 .quiet { display: block; font-size: .85rem }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 0 2rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% }
summary { cursor: pointer } details { margin-top: .5rem }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; font-weight: 400; white-space: nowrap;
  border-bottom: 1px solid var(--edge) }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 7rem }
.number { text-align: right; font-variant-numeric: tabular-nums }
td.error { white-space: normal; overflow-wrap: anywhere; padding-left: 1.2rem; color: var(--bad) }
svg { display: block } svg.chart { width: 100%; height: 5.5rem } svg.spark { width: 8rem; height: 1.6rem }
svg .mark { fill: var(--ink) } svg .base { stroke: var(--edge) }
svg .line { fill: none; stroke: var(--ink); stroke-width: 1.5 }
@media (max-width: 40rem) {
  ol.journey { flex-direction: column; gap: 1.5rem }
  ol.journey li + li::before { content: "\\2193"; left: 50%; top: -1.5rem; transform: translateX(-50%) } }
"""
