// Remembers what each figure computed from its data when it was first drawn, for audit.js.
window.firstDrawn = new WeakMap()
new MutationObserver(() => {
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    if (plot.calcdata && !window.firstDrawn.has(plot)) window.firstDrawn.set(plot, plot.calcdata)
  }
}).observe(document, { subtree: true, childList: true, attributes: true })
