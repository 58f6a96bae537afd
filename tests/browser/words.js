() => {
  // The words of the figures shown that lie on one another, that end beyond the edge of their figure, or that are set too small to
  // be read. Words that slant alike are compared along their slant: the boxes around slanted words overlap where the words do not.
  const LEEWAY_PX = 2
  const LEAST_PX = 9
  const slantOf = (text) => { const { a, b } = text.getScreenCTM(); return Math.atan2(b, a) }
  const boxOf = (text, slant) => {
    const { x, y, width, height } = text.getBBox()
    const matrix = new DOMMatrix().rotate((-slant * 180) / Math.PI).multiply(text.getScreenCTM())
    const corners = [[x, y], [x + width, y], [x, y + height], [x + width, y + height]].map(([px, py]) => new DOMPoint(px, py).matrixTransform(matrix))
    const [xs, ys] = [corners.map((corner) => corner.x), corners.map((corner) => corner.y)]
    return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) }
  }
  const told = []
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    const name = plot.closest("[class*=st-key-]")?.className.match(/st-key-(\S+)/)?.[1] ?? "a figure"
    const edge = plot.querySelector(".main-svg").getBoundingClientRect()
    const words = [...plot.querySelectorAll(".main-svg text")].filter(
      (text) => text.textContent.trim() && !text.closest(".hoverlayer, .legend") && text.getBBox().width > 0 && text.checkVisibility({ opacityProperty: true, visibilityProperty: true }),
    )
    words.forEach((word, at) => {
      const [said, slant, box] = [word.textContent.trim(), slantOf(word), boxOf(word, 0)]
      const out = Math.max(edge.left - box.left, box.right - edge.right, edge.top - box.top, box.bottom - edge.bottom)
      const { a, b } = word.getScreenCTM()
      const size = parseFloat(getComputedStyle(word).fontSize) * Math.hypot(a, b)
      if (size < LEAST_PX - 0.1) told.push(`${name}: "${said}" is ${size.toFixed(1)} px small`)
      if (out > LEEWAY_PX) told.push(`${name}: "${said}" ends ${Math.round(out)} px beyond the figure`)
      for (const other of words.slice(at + 1)) {
        const frame = Math.abs(slant - slantOf(other)) < 0.01 ? slant : 0
        const [one, two] = [boxOf(word, frame), boxOf(other, frame)]
        const across = Math.min(one.right, two.right) - Math.max(one.left, two.left)
        const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top)
        if (across > LEEWAY_PX && down > LEEWAY_PX) told.push(`${name}: "${said}" on "${other.textContent.trim()}" by ${Math.round(across)} × ${Math.round(down)} px`)
      }
    })
  }
  return told
}
