// The board for a screen on a wall: as many rows as fit, in type as large as lets them all fit, the worst first; what does not
// fit is counted. Put after link.js. Every text is set as text, so a name from the network stays a name.

const LEAST_REM = 1
const LARGEST_REM = 1.6
const COLUMN_EM = 34
const ROW_EM = 1.8
const ROOMY_ROW_EM = 2.6
const HEAD_EM = 1.6
const GAP_EM = 2
const FOOT_REM = 2.6
const NARROW_FOOT_REM = 5.4
const LEAST_ROWS = 3
const instances = new WeakMap()

// The largest type in which all rows fit, with the columns and the rows of each; the least type where they never do.
// A type in which one column is wider than the screen is too large, however few the rows are.
const fitOf = (rows, width, height, rem) => {
  const fit = (type) => {
    const columns = Math.max(1, Math.floor((width + GAP_EM * type) / ((COLUMN_EM + GAP_EM) * type)))
    return { type, columns, each: Math.max(LEAST_ROWS, Math.floor((height - HEAD_EM * 0.8 * type) / (ROW_EM * type))) }
  }
  const least = LEAST_REM * rem
  for (let type = Math.min(LARGEST_REM * rem, width / COLUMN_EM); type > least; type -= 0.5) {
    const found = fit(type)
    if (found.each * found.columns >= rows) return found
  }
  return fit(least)
}

const nameOf = (row, data) => {
  const at = row.name.lastIndexOf("/") + 1
  const whole = at === 0 || at === row.name.length
  const text = element("a", "name")
  text.href = addressOf(data.here, data.target, row.query)
  text.setAttribute("aria-label", row.name)
  text.title = row.name
  if (!whole) text.append(element("span", "path", row.name.slice(0, at)))
  text.append(ownOf(whole ? row.name : row.name.slice(at)))
  return text
}

const lineOf = (row, data) => {
  const [label, bad] = data.words[row.state]
  const line = element("tr", [row.state, row.pinned ? "pinned" : "", row.out ? "out" : "", bad ? "bad" : ""].filter(Boolean).join(" "))
  const cells = ["model", "state", "", "wait"].map((name) => element("td", name))
  cells[0].setAttribute("role", "rowheader")
  cells[0].append(nameOf(row, data))
  cells[1].append(element("i", "mark"), document.createTextNode(label))
  cells[1].title = row.why || label
  const free = element("div", "free")
  free.append(element("b", null, row.free), trackOf(row.fill, row.worst))
  cells[2].append(free)
  cells[2].title = row.worst_text
  cells[3].textContent = row.wait
  line.append(...cells)
  return line
}

const tableOf = (rows, data, part) => {
  const table = element("table")
  const head = element("thead")
  const names = element("tr")
  for (const [name, label] of [["model", "Model"], ["state", "State"], ["free", data.free], ["wait", "Wait"]]) {
    const [word, size] = label.split(", ")
    const cell = element("th", name, word)
    if (size) cell.append(element("span", "size", `, ${size}`))
    cell.scope = "col"
    names.append(cell)
  }
  head.append(names)
  const body = element("tbody")
  body.append(...rows.map((row) => lineOf(row, data)))
  table.append(element("caption", null, part), head, body)
  return table
}

const moreOf = (left, data) => {
  const counts = new Map()
  for (const row of left) counts.set(row.state, (counts.get(row.state) ?? 0) + 1)
  const said = [...counts].map(([state, number]) => `${number} ${data.words[state][0]}`)
  return `and ${left.length} more: ${said.join(", ")}`
}

const draw = (instance) => {
  const { root, data } = instance
  const main = root.getRootNode().host.closest('[data-testid="stMain"]')
  if (!data || !main) return
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize)
  const top = root.getBoundingClientRect().top - main.getBoundingClientRect().top + main.scrollTop
  const narrow = root.clientWidth < COLUMN_EM * LEAST_REM * rem
  const height = main.clientHeight - top - (narrow ? NARROW_FOOT_REM : FOOT_REM) * rem
  const { type, columns, each } = fitOf(data.rows.length, root.clientWidth, height, rem)
  const shown = data.rows.slice(0, each * columns)
  const used = Math.min(columns, Math.ceil(shown.length / each))
  const per = Math.ceil(shown.length / used)
  const roomy = Math.min(ROOMY_ROW_EM, Math.max(ROW_EM, (height / type - HEAD_EM) / per))
  const drawn = JSON.stringify([data, type, used, per, roomy])
  if (drawn === instance.drawn) return
  instance.drawn = drawn
  root.style.setProperty("--type", `${type}px`)
  root.style.setProperty("--row", `${roomy.toFixed(2)}em`)
  const tables = element("div", "columns")
  for (let first = 0; first < shown.length; first += per) {
    tables.append(tableOf(shown.slice(first, first + per), data, first ? `${data.alt}, continued` : data.alt))
  }
  const foot = element("p", "foot")
  const left = data.rows.slice(shown.length)
  if (left.length) foot.append(element("span", "more", moreOf(left, data)))
  foot.append(...[data.legend, ...data.notes].filter(Boolean).map((note) => element("span", null, note)))
  root.replaceChildren(tables, foot)
}

export default function ({ data, parentElement }) {
  let instance = instances.get(parentElement)
  if (!instance) {
    const root = parentElement.querySelector(".wall")
    instance = { root, redraw: () => draw(instance) }
    root.addEventListener("click", (event) => {
      const link = event.target.closest("a")
      if (!link || !isPlainClick(event)) return
      event.preventDefault()
      goTo(link.href)
    })
    // What stands above it is drawn later, and takes its room then.
    instance.observer = new ResizeObserver(instance.redraw)
    const around = root.getRootNode().host.closest('[data-testid="stMainBlockContainer"]')
    instance.observer.observe(around ?? document.body)
    window.addEventListener("resize", instance.redraw)
    instances.set(parentElement, instance)
  }
  instance.data = data
  draw(instance)
  return () => {
    instance.observer.disconnect()
    window.removeEventListener("resize", instance.redraw)
    instances.delete(parentElement)
  }
}
