// Makes an element. Its text is set as text, never as HTML: a name from the network stays a name. Put before grid.js and wall.js.

const element = (tag, className, text) => {
  const node = document.createElement(tag)
  if (className) node.className = className
  if (text !== undefined && text !== null) node.textContent = text
  return node
}

// What stands behind a name's last slash: where it is too long for its place it is cut in its middle, since its end tells as much
// as its beginning. Other letters than these may run from right to left, or belong together, and are not taken apart.
const TAIL = 6
const ownOf = (own) => {
  const end = element("span", "end")
  if (own.length <= 2 * TAIL || !/^[ -~]+$/.test(own)) end.textContent = own
  else end.append(element("span", "start", own.slice(0, -TAIL)), element("span", "tail", own.slice(-TAIL)))
  return end
}

// The bar of an allowance: solid as far as it holds at worst, hatched from there to the named one, empty where none is known.
const trackOf = (named, worst) => {
  const track = element("div", named === null ? "track none" : "track")
  for (const [className, share] of [["range", named], ["", worst]]) {
    if (share === null) continue
    const bar = element("i", className)
    bar.style.width = `${100 * share}%`
    track.append(bar)
  }
  return track
}
