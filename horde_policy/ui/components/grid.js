// A table of real HTML: readable by screen readers, reachable by keyboard, rows are links. Every text is set as text
// (never as HTML), so a name from the network stays a name. Rows that did not change keep their DOM nodes.

const FIRST_ROWS = 60
const SVG = "http://www.w3.org/2000/svg"
const instances = new WeakMap()

const shape = (tag, attributes) => {
  const node = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  return node
}

// A vessel filled to a level: the state reads without its colour.
const LEVELS = { full: 10, falling: 5.5, floor: 2 }

const stateIcon = (state) => {
  const svg = shape("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" })
  const dashed = state === "too_large" || state === "unknown"
  svg.append(shape("rect", { x: 1, y: 1, width: 12, height: 12, rx: 2.5, fill: "none", stroke: "currentColor", "stroke-width": 1.6, ...(dashed && { "stroke-dasharray": "2.4 1.8" }) }))
  if (state in LEVELS) svg.append(shape("rect", { x: 2, y: 12 - LEVELS[state], width: 10, height: LEVELS[state], fill: "currentColor" }))
  if (state === "no_worker") svg.append(shape("path", { d: "M4 4l6 6M10 4l-6 6", stroke: "currentColor", "stroke-width": 1.8, fill: "none" }))
  if (state === "too_large") svg.append(shape("path", { d: "M4 7h6", stroke: "currentColor", "stroke-width": 1.8, fill: "none" }))
  if (state === "unknown") svg.append(shape("path", { d: "M5 5.6a2 2 0 1 1 2.6 1.9c-.5.2-.6.4-.6 1M7 10.4v.2", stroke: "currentColor", "stroke-width": 1.4, fill: "none" }))
  return svg
}

const opens = (row) => typeof row.query === "string"

const MARKS = { no_worker: "×", too_large: "–", unknown: "?" }

const countOf = (number) => number.toLocaleString("en-US")
const shortOf = (size) => ({ 1024: "1k", 2048: "2k", 4096: "4k" })[size] ?? String(size)

// A name whose path gives way before its end does: the end tells models apart.
const endedOf = (name) => {
  const at = name.lastIndexOf("/") + 1
  if (at === 0 || at === name.length) return wrappedOf(name)
  const text = element("span", "clip ends")
  text.append(element("span", "path", name.slice(0, at)), ownOf(name.slice(at)))
  return text
}

// Shows the rest of a card; only where rows are cards (grid.css).
const moreOf = (row, name, instance) => {
  const button = element("button", "more")
  button.type = "button"
  button.setAttribute("aria-label", `More of ${name}`)
  button.setAttribute("aria-expanded", instance.open.has(row.id))
  button.append(shape("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }))
  button.firstChild.append(shape("path", { d: "M2.5 4.5L6 8l3.5-3.5", fill: "none", stroke: "currentColor", "stroke-width": 1.6 }))
  return button
}

// What a row's folded columns hold, to stand below it; shown only between a card and the whole table (grid.css).
const restOf = (line, columns) => {
  const rest = element("tr", "rest")
  const cell = element("td")
  cell.colSpan = columns.length
  columns.forEach((column, index) => {
    const from = line.cells[index]
    if (!column.fold || from.classList.contains("blank")) return
    const part = element("span", `part fold-${column.fold}`)
    part.append(element("span", "label", from.dataset.label + (from.dataset.unit ?? "")))
    part.append(...[...from.childNodes].map((node) => node.cloneNode(true)))
    cell.append(part)
  })
  rest.append(cell)
  return rest
}

const withRest = (line, instance) =>
  instance.folds && line.classList.contains("open") ? [line, restOf(line, instance.data.columns)] : [line]

const toggle = (button, instance) => {
  const line = button.closest("tr")
  const opened = line.classList.toggle("open")
  button.setAttribute("aria-expanded", opened)
  instance.open[opened ? "add" : "delete"](line.dataset.id)
  if (line.nextElementSibling?.classList.contains("rest")) line.nextElementSibling.remove()
  line.after(...withRest(line, instance).slice(1))
}

const fillers = {
  name(cell, value, row, { data }, column) {
    const { text: name, sub, title } = typeof value === "string" ? { text: value } : value
    const text = column.ends ? endedOf(name) : wrappedOf(name)
    if (opens(row)) {
      const link = element("a")
      if (text.childElementCount) link.setAttribute("aria-label", name)
      link.href = addressOf(data.here, data.target, row.query)
      link.append(text)
      cell.append(link)
    } else cell.append(text)
    cell.title = title ?? name
    if (sub) cell.append(element("span", "sub", sub))
  },
  state(cell, value, row, { data }) {
    const { state, title, sub } = typeof value === "string" ? { state: value } : value
    const [label, bad, text] = data.words[state]
    const node = element("span", `state ${state}${bad ? " bad" : ""}`)
    node.append(stateIcon(state), element("span", null, label))
    cell.append(node)
    if (sub) cell.append(element("span", "sub", sub))
    cell.title = title ?? text
  },
  allowance(cell, value) {
    const node = element("div", `allowance ${value.state}`)
    node.append(element("b", null, value.text), trackOf(value.fill, value.worst))
    if (value.sub) node.append(element("span", "sub", value.sub))
    cell.append(node)
  },
  strip(cell, value, row, { data }, column) {
    const node = element("span", "strip")
    const said = value.map((text, index) => {
      const [state, allowance] = text.split(" ")
      const label = data.words[state][0]
      const box = element("span", state)
      box.title = `${countOf(column.sizes[index])} tokens: ${label}, ${allowance ? `${countOf(Number(allowance))} free` : "allowance not known"}`
      if (allowance && !(state in MARKS)) {
        const bar = element("i")
        bar.style.height = `${Math.max(8, Math.min(100, (100 * Number(allowance)) / data.ceiling))}%`
        box.append(bar)
      } else box.textContent = MARKS[state] ?? "?"
      node.append(box)
      return box.title
    })
    node.setAttribute("role", "img")
    node.setAttribute("aria-label", said.join("; "))
    cell.append(node)
  },
  spark(cell, value) {
    const svg = shape("svg", { viewBox: "0 0 56 22", class: "spark", role: "img", "aria-label": value.text })
    const title = shape("title", {})
    title.textContent = value.text
    svg.append(title)
    const step = 56 / value.points.length
    let path = ""
    let known = false
    value.points.forEach((share, index) => {
      if (share !== null) {
        const y = (20.5 - 19 * share).toFixed(1)
        path += `${known ? "V" : `M${(index * step).toFixed(1)} `}${y}H${((index + 1) * step).toFixed(1)}`
      }
      known = share !== null
    })
    svg.append(shape("path", { d: path, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }))
    if (!known) {
      const mark = shape("text", { x: 56, y: 13, "text-anchor": "end", "font-size": 12 })
      mark.textContent = MARKS.unknown
      svg.append(mark)
    }
    cell.append(svg)
  },
  text(cell, value) {
    if (typeof value === "string") {
      cell.append(document.createTextNode(value))
      cell.title = inYourZone(value)
    } else {
      cell.append(...wholeIn(value.text, value.names ?? []))
      if (value.sub) cell.append(element("span", "sub", value.sub))
      if (value.title) cell.title = value.title
    }
  },
}

// An instant as every page writes it, alone in its cell, in the zone of who looks; empty for any other text.
const inYourZone = (text) =>
  /^\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} UTC$/.test(text) ? `${new Date(text).toLocaleString()} in your time zone` : ""

// A text with names in it, in their order: each keeps to one line where it fits into one.
const wholeIn = (text, names) => {
  const parts = []
  for (const name of names) {
    const at = text.indexOf(name)
    parts.push(document.createTextNode(text.slice(0, at)), element("span", "whole", name))
    text = text.slice(at + name.length)
  }
  return [...parts, document.createTextNode(text)]
}

const isBlank = (value) => value === null || value === undefined || value === "" || (value.text === "" && !value.sub)

const buildRow = (row, columns, instance) => {
  const line = element("tr", [opens(row) ? "opens" : "", row.pinned ? "pinned" : "", row.out ? "out" : "", instance.brief ? "brief" : "", instance.open.has(row.id) ? "open" : ""].filter(Boolean).join(" "))
  line.dataset.id = row.id
  columns.forEach((column, index) => {
    const cell = element("td", [column.kind === "name" ? "name" : "", column.right ? "right" : "", column.wide ? "wide" : "", column.wrap ? "wrap" : "", typeof column.brief === "string" ? "brief" : "", column.fold ? `fold-${column.fold}` : "", isBlank(row.cells[column.key]) ? "blank" : ""].filter(Boolean).join(" "))
    if (index === 0) cell.setAttribute("role", "rowheader")
    cell.dataset.label = column.sizes.length ? `${column.label}: ${column.sizes.map(shortOf).join(", ")}` : column.label
    if (column.unit && !column.sizes.length) cell.dataset.unit = `, ${column.unit}`
    if (column.brief) cell.dataset.brief = column.brief
    const value = row.cells[column.key]
    if (value !== null && value !== undefined) fillers[column.kind](cell, value, row, instance, column)
    if (index === 0 && instance.brief) cell.append(moreOf(row, cell.title, instance))
    line.append(cell)
  })
  return line
}

const buildHead = (data, instance) => {
  const line = element("tr")
  for (const column of data.columns) {
    const cell = element("th", [column.right ? "right" : "", column.fold ? `fold-${column.fold}` : ""].filter(Boolean).join(" "))
    cell.scope = "col"
    if (column.help) cell.title = column.help
    let holder = cell
    if (typeof column.query === "string") {
      holder = element("a", "sort")
      holder.href = addressOf(data.here, data.here, column.query)
      cell.append(holder)
      if (column.sorted) cell.setAttribute("aria-sort", column.sorted)
    }
    holder.append(document.createTextNode(column.label))
    if (column.sorted) {
      const arrow = element("span", "arrow", column.sorted === "descending" ? "▼" : "▲")
      arrow.setAttribute("aria-hidden", "true")
      holder.append(arrow)
    }
    if (column.kind === "strip") {
      const sizes = element("span", "strip-head unit")
      for (const size of column.sizes) sizes.append(element("span", null, shortOf(size)))
      cell.append(sizes)
    } else if (column.unit) holder.append(element("span", "unit", column.unit))
    line.append(cell)
  }
  instance.head.replaceChildren(line)
}

const buildBody = (data, instance) => {
  const known = instance.rows
  const rows = new Map()
  const line = (row) => {
    const text = JSON.stringify(row)
    const before = known.get(row.id)
    const node = before && before.text === text && instance.columns === instance.nextColumns ? before.node : buildRow(row, data.columns, instance)
    rows.set(row.id, { text, node })
    return node
  }
  cancelAnimationFrame(instance.frame)
  const first = data.rows.slice(0, Math.max(FIRST_ROWS, known.size)).map(line)
  instance.body.replaceChildren(...first.flatMap((node) => withRest(node, instance)))
  instance.rows = rows
  instance.columns = instance.nextColumns
  let next = first.length
  const more = () => {
    instance.body.append(...data.rows.slice(next, next + 120).map(line).flatMap((node) => withRest(node, instance)))
    next += 120
    if (next < data.rows.length) instance.frame = requestAnimationFrame(more)
  }
  if (next < data.rows.length) instance.frame = requestAnimationFrame(more)
}

const start = (root, parentElement) => {
  const table = element("table")
  const instance = { table, caption: element("caption"), head: element("thead"), body: element("tbody"), empty: element("div", "empty"), rows: new Map(), open: new Set(), brief: false, folds: false, columns: "", frame: 0 }
  table.append(instance.caption, instance.head, instance.body)
  root.append(table, instance.empty)
  root.addEventListener("click", (event) => {
    if (!isPlainClick(event)) return
    const more = event.target.closest("button.more")
    if (more) return toggle(more, instance)
    const row = event.target.closest("tr.opens")
    const link = event.target.closest("a") ?? (row && document.getSelection().isCollapsed ? row.querySelector("a") : null)
    if (!link) return
    event.preventDefault()
    goTo(link.href)
  })
  instances.set(parentElement, instance)
  return instance
}

export default function ({ data, parentElement }) {
  const instance = instances.get(parentElement) ?? start(parentElement.querySelector(".grid"), parentElement)
  instance.data = data
  instance.brief = data.columns.some((column) => typeof column.brief === "string")
  instance.folds = instance.brief && data.columns.some((column) => column.fold)
  parentElement.querySelector(".grid").classList.toggle("folds", instance.folds)
  instance.caption.textContent = data.alt
  instance.nextColumns = JSON.stringify([data.columns, data.here, data.target, data.ceiling])
  instance.table.hidden = data.rows.length === 0
  instance.empty.hidden = data.rows.length > 0
  instance.empty.textContent = data.empty
  buildHead(data, instance)
  buildBody(data, instance)
  return () => {
    cancelAnimationFrame(instance.frame)
    instances.delete(parentElement)
  }
}
