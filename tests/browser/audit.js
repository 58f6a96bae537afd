() => {
  // What a stranger with a keyboard or weak eyes would miss on the page shown: names, contrast, room, pictures in words.
  const all = []
  const walk = (root) => {
    for (const node of root.querySelectorAll("*")) {
      all.push(node)
      if (node.shadowRoot) walk(node.shadowRoot)
    }
  }
  walk(document)
  const main = document.querySelector("[data-testid=stMain]")
  const up = (node) => node.parentElement ?? (node.getRootNode().host ?? null)
  const shown = (node) => {
    const box = node.getBoundingClientRect()
    return box.width > 1 && box.height > 1 && node.checkVisibility({ opacityProperty: true, visibilityProperty: true })
  }
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]))
  const background = (node) => {
    const layers = []
    for (let at = node; at; at = up(at)) {
      const colour = rgba(getComputedStyle(at).backgroundColor)
      if (colour[3] > 0) layers.push(colour)
      if (colour[3] > 0.99) break
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255])
  }
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b)
    return (high + 0.05) / (low + 0.05)
  }
  const opacity = (node) => {
    let product = 1
    for (let at = node; at; at = up(at)) product *= Number(getComputedStyle(at).opacity)
    return product
  }
  const painted = (mark, property, below) => {
    const style = getComputedStyle(mark)
    if (style[property] === "none") return null
    const colour = rgba(style[property])
    colour[3] *= opacity(mark) * Number(style[`${property}Opacity`])
    return colour[3] > 0 ? over(colour, below) : null
  }
  // What a text on a figure lies on: the colours of the mark at its middle, a pattern's stripes too, and the page where it sticks out.
  const beneath = (node, plot, page) => {
    const box = node.getBoundingClientRect()
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
    const marks = [...plot.querySelectorAll(".point path, path.point")].filter((path) => {
      const at = path.getBoundingClientRect()
      return at.left <= x && x <= at.right && at.top <= y && y <= at.bottom && Number(getComputedStyle(path).opacity) > 0
    })
    const mark = marks.at(-1)
    if (!mark) return [page]
    const at = mark.getBoundingClientRect()
    const out = box.left < at.left - 2 || box.right > at.right + 2 ? [page] : []
    const pattern = getComputedStyle(mark).fill.match(/url\(["']?[^#]*#([^"')]+)/)
    if (!pattern) return [...out, painted(mark, "fill", page) ?? page]
    let below = page
    const colours = []
    for (const part of document.getElementById(pattern[1]).children) {
      const colour = painted(part, "stroke", below) ?? painted(part, "fill", below) // a stripe is a line, which encloses nothing
      if (colour) colours.push(colour)
      if (part.tagName === "rect" && colours.length) below = colours.at(-1)
    }
    return [...out, ...colours]
  }
  const faint = []
  const seen = new Set()
  for (const node of all) {
    const own = [...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.textContent.trim()).join(" ").trim()
    if (!own || !shown(node) || ["STYLE", "SCRIPT", "OPTION", "CAPTION"].includes(node.tagName)) continue
    if (node.closest("[disabled], [aria-disabled=true], [data-testid=stIconMaterial], .modebar")) continue
    const plot = node.closest(".cartesianlayer")
    const onMark = plot !== null && !node.closest("[class*=axislayer]")
    if (onMark && plot.querySelector(".heatmaplayer image")) continue // a picture's colours: test_contrast.py computes them
    const style = getComputedStyle(node)
    const svg = node.namespaceURI === "http://www.w3.org/2000/svg"
    const front = rgba(svg && style.fill !== "none" ? style.fill : style.color)
    if (front[3] === 0) continue // not drawn
    front[3] *= opacity(node) * (svg ? Number(style.fillOpacity) : 1)
    const page = background(node.closest("[data-testid=stSliderThumbValue]")?.closest("[data-testid=stSlider]") ?? node)
    const backs = onMark ? beneath(node, plot, page) : [page]
    const size = parseFloat(style.fontSize)
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
    const found = Math.min(...backs.map((back) => contrast(over(front, back), back)))
    const key = `${own.slice(0, 40)} ${style.color}`
    if (found < (large ? 3 : 4.5) && !seen.has(key)) {
      seen.add(key)
      faint.push(`${found.toFixed(2)}: ${own.slice(0, 40)} (${node.tagName.toLowerCase()}.${String(node.className?.baseVal ?? node.className).slice(0, 30)})`)
    }
  }
  const nameOf = (node) =>
    (node.getAttribute("aria-label") || node.innerText || node.textContent || node.title || node.placeholder || [...(node.labels ?? [])].map((l) => l.textContent).join(" ") ||
      (node.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => node.getRootNode().getElementById?.(id)?.textContent ?? "").join(" ") || "").trim()
  const controls = all.filter((node) => node.matches("a[href], button, input:not([type=hidden]), select, textarea, [role=button], [role=slider]") && shown(node) && !node.closest(".modebar"))
  // A rule's code may stand only where the page says what the rule is: its words follow the code in bold.
  const explained = new Set(all.filter((node) => node.tagName === "STRONG").map((node) => node.textContent.trim()))
  const codes = new Set()
  for (const node of all) {
    if (["STYLE", "SCRIPT"].includes(node.tagName)) continue
    for (const child of node.childNodes) {
      if (child.nodeType !== 3) continue
      for (const [code] of child.textContent.matchAll(/(?<![\w&#./-])[ABCDRST]\d{1,2}(?![\w.-])/g)) if (!explained.has(code)) codes.add(code)
    }
  }
  return {
    faint,
    codes: [...codes],
    nameless: controls.filter((node) => !nameOf(node)).map((node) => node.outerHTML.slice(0, 160)),
    pictures: all
      .filter((node) => node.matches(".horde-figure, [data-testid=stDataFrame], [data-testid=stImage]") && shown(node))
      .filter((node) => ![node, ...node.querySelectorAll("*")].some((inner) => (inner.getAttribute("aria-label") || inner.getAttribute("alt") || "").trim()))
      .map((node) => node.dataset.testid ?? node.className),
    // Where its margins are too small, Plotly draws the whole figure a second time (decision 0196); at the right that depends on
    // where the last label of an axis of time happens to stand.
    "drawn twice": [...document.querySelectorAll(".js-plotly-plot")].flatMap((plot) => {
      const { margin, _size } = plot._fullLayout ?? { margin: {} }
      const lacks = ["l", "t", "b"].filter((side) => _size?.[side] > margin[side] + 0.5).map((side) => `${side} ${_size[side]} > ${margin[side]}`)
      return lacks.length ? [`${plot.closest("[class*=st-key-]")?.className.match(/st-key-\S+/)?.[0]}: ${lacks}`] : []
    }),
    // A figure whose data are computed anew after it was first drawn is drawn twice whole (decision 0202); first_drawn.js looks on.
    "computed twice": [...document.querySelectorAll(".js-plotly-plot")]
      .filter((plot) => window.firstDrawn.get(plot) !== plot.calcdata)
      .map((plot) => plot.closest("[class*=st-key-]")?.className.match(/st-key-\S+/)?.[0]),
    wide: Math.max(document.documentElement.scrollWidth - window.innerWidth, main.scrollWidth - main.clientWidth),
    unreachable: controls.filter((node) => node.tabIndex < 0 && !node.disabled && !node.closest("[data-testid^=stNumberInputStep], [role=listbox], [role=radiogroup], [role=group], [role=combobox], [data-baseweb], [role=grid]")).map((node) => node.outerHTML.slice(0, 160)),
  }
}
