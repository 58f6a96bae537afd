// The row of figures on top. A tile of the kind "age" ticks in the browser.

const instances = new WeakMap()

const node = (tag, className, text) => {
  const made = document.createElement(tag)
  made.className = className
  made.textContent = text
  return made
}

const tileOf = (tile) => {
  const box = node("div", "tile", "")
  const term = node("dt", "", tile.label)
  const value = node("dd", "value", tile.value)
  if (tile.unit) value.append(node("span", "unit", tile.unit))
  box.append(term, value)
  if (tile.parts) {
    const bar = node("dd", "parts", "")
    for (const part of tile.parts) {
      const piece = node("span", part.state, "")
      piece.style.flexGrow = part.number
      bar.append(piece)
    }
    box.append(bar)
  }
  if (tile.sub) box.append(node("dd", "sub", tile.sub))
  box.title = tile.help ?? ""
  return box
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".pulse")
  let instance = instances.get(parentElement)
  if (!instance) {
    instance = {}
    instances.set(parentElement, instance)
  }
  root.replaceChildren(...data.tiles.map(tileOf))
  const index = data.tiles.findIndex((tile) => tile.kind === "age")
  if (index >= 0) {
    const box = root.children[index]
    const value = box.querySelector(".value")
    runAge(instance, data, (ageS) => {
      if (!data.ticking) return
      value.textContent = formatAge(ageS)
      box.classList.toggle("stale", ageS > data.age_limit_s)
    })
  }
  return () => {
    clearInterval(instance.timer)
    instances.delete(parentElement)
  }
}
