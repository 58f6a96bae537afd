"""The page of a report: its document, style, script and content policy. Nothing here is text from the network."""

from typing import Final

from horde_policy.views.figures.style import ACCENT, FAINT, STATE_COLOURS, TEXT

__all__ = ["DOCUMENT", "DRAW", "STYLE"]

STYLE: Final = f"""
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: {TEXT["light"]}; background: #fff; margin: 0 auto; padding: 1.5rem;
  max-width: 900px; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #d6dce3; padding-bottom: .2rem; }}
p, li, td, th {{ overflow-wrap: anywhere; }}
a {{ color: {ACCENT["light"]}; }}
.facts, .findings ul {{ color: {FAINT["light"]}; margin: .3rem 0; padding-left: 1.2rem; }}
.synthetic {{ border: 2px solid {STATE_COLOURS["light"]["falling"]}; padding: .5rem .8rem; font-weight: 600; }}
.findings {{ padding-left: 1.4rem; }}
.findings > li {{ margin: .8rem 0; }}
.severity {{ display: inline-block; border: 1px solid currentColor; border-radius: .2rem; padding: 0 .4rem; font-size: .8rem; }}
.wrong .severity, .bad .severity {{ color: {STATE_COLOURS["light"]["floor"]}; }}
.open .severity {{ color: {STATE_COLOURS["light"]["falling"]}; }}
.note .severity {{ color: #4d5967; }}
.fine .severity {{ color: #0e7463; }}
.figure {{ color: {FAINT["light"]}; white-space: normal; }}
.nothing {{ border-left: 4px solid #aeb8c4; padding-left: .8rem; color: {FAINT["light"]}; }}
figure {{ margin: 1rem 0; break-inside: avoid; }}
figcaption {{ color: {FAINT["light"]}; font-size: .9rem; }}
.chart {{ width: 100%; }}
table {{ border-collapse: collapse; width: 100%; font-size: .9rem; }}
td, th {{ border-bottom: 1px solid #d6dce3; padding: .25rem .5rem; text-align: left; vertical-align: top; }}
@media print {{
  body {{ max-width: none; padding: 0; font-size: 11pt; }}
  h2 {{ break-after: avoid; }}
  .findings > li, tr {{ break-inside: avoid; }}
  .modebar-container {{ display: none; }}
  a {{ color: inherit; }}
}}
@page {{ margin: 15mm; }}
"""

DRAW: Final = """
"use strict";
const config = {displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]};
for (const data of document.querySelectorAll('script[type="application/json"][data-for]')) {
  const figure = JSON.parse(data.textContent);
  Plotly.newPlot(data.dataset.for, figure.data, figure.layout, config);
}
const charts = () => document.querySelectorAll(".chart");
const toPaper = () => charts().forEach((chart) => Plotly.relayout(chart, {width: 680}));
const toScreen = () => charts().forEach((chart) => Plotly.relayout(chart, {width: null, autosize: true}));
addEventListener("beforeprint", toPaper);
addEventListener("afterprint", toScreen);
"""

_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; "
    "base-uri 'none'"
)

DOCUMENT: Final = (
    "<!DOCTYPE html>\n"
    '<html lang="en"><head><meta charset="utf-8">'
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="referrer" content="no-referrer">'
    "<title>{title}</title><style>{style}</style></head>\n"
    "<body>{body}\n"
    "<noscript><p>The figures need scripts, which stand in this file; the findings do not.</p></noscript>\n"
    "<script>{library}</script>\n<script>{draw}</script></body></html>\n"
)
