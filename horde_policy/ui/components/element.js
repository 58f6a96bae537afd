// Makes an element. Its text is set as text, never as HTML: a name from the network stays a name. Put before grid.js and wall.js.

const element = (tag, className, text) => {
  const node = document.createElement(tag)
  if (className) node.className = className
  if (text !== undefined && text !== null) node.textContent = text
  return node
}

// The letters of a name as a reader counts them: a sign and what is written on it belong together.
const SEGMENTER = new Intl.Segmenter(undefined, { granularity: "grapheme" })
const lettersOf = (name) => (/^[ -~]*$/.test(name) ? name.split("") : [...SEGMENTER.segment(name)].map((part) => part.segment))

// What stands behind a name's last slash: where it is too long for its place it is cut in its middle, since its end tells as much
// as its beginning. What runs from right to left, also in part, is not taken apart: its parts would change places.
const TAIL = 6
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
const ownOf = (own) => {
  const end = element("span", "end")
  const letters = RIGHT_TO_LEFT.test(own) ? [] : lettersOf(own)
  if (letters.length <= 2 * TAIL) end.textContent = own
  else end.append(element("span", "start", letters.slice(0, -TAIL).join("")), element("span", "tail", letters.slice(-TAIL).join("")))
  return end
}

// A name whose end, as long as it fits into a line, is never broken at its hyphens (grid.css): its path gives way first.
const endWholeOf = (name) => {
  const at = RIGHT_TO_LEFT.test(name) ? name.length : name.lastIndexOf("/") + 1
  const parts = at > 0 ? [document.createTextNode(name.slice(0, at))] : []
  return at < name.length ? [...parts, element("span", "whole", name.slice(at))] : parts
}

// A name that wraps: one too long for the lines it has loses its middle, and not its end; on a phone it stands whole (grid.css).
const MOST = 60
const FIRST = 30
const LAST = 22
const wrappedOf = (name) => {
  const text = element("span", "clip")
  const letters = lettersOf(name)
  if (letters.length <= MOST) text.append(...endWholeOf(name))
  else {
    text.append(document.createTextNode(letters.slice(0, FIRST).join("")))
    text.append(element("span", "middle", letters.slice(FIRST, -LAST).join("")), element("span", "last", letters.slice(-LAST).join("")))
  }
  return text
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
