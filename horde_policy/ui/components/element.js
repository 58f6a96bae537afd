// Makes an element. Its text is set as text, never as HTML: a name from the network stays a name. Put before grid.js and wall.js.

const element = (tag, className, text) => {
  const node = document.createElement(tag)
  if (className) node.className = className
  if (text !== undefined && text !== null) node.textContent = text
  return node
}
