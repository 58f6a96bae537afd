// The row of figures on top. The tile of the kind "age" follows the status line's.

const instances = new WeakMap()

const node = (tag, className, text) => {
  const made = document.createElement(tag)
  made.className = className
  made.textContent = text
  return made
}

const tileOf = (tile) => {
  const box = node("div", `tile ${tile.kind}`, "")
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
    instance.hear = ({ detail }) => {
      const box = root.querySelector(".tile.age")
      if (!box) return
      box.querySelector(".value").textContent = detail.text
      box.classList.toggle("stale", detail.stale)
    }
    window.addEventListener(AGE_EVENT, instance.hear)
    instances.set(parentElement, instance)
  }
  root.replaceChildren(...data.tiles.map(tileOf))
  window.dispatchEvent(new Event(ASK_EVENT))
  return () => {
    window.removeEventListener(AGE_EVENT, instance.hear)
    instances.delete(parentElement)
  }
}
