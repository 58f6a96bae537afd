// The pages, section by section. Each is a real link, which carries what all pages share.

const instances = new WeakMap()

const linkOf = (link, here) => {
  const made = element("a")
  made.href = addressOf(here, link.page, link.query)
  made.title = link.help
  if (link.page === here) made.setAttribute("aria-current", "page")
  const icon = element("span", "icon", link.icon)
  icon.setAttribute("aria-hidden", "true")
  icon.setAttribute("translate", "no")
  made.append(icon, element("span", "label", link.label))
  const item = element("li")
  item.append(made)
  return item
}

const sectionOf = (section, here) => {
  const list = element("ul")
  list.append(...section.links.map((link) => linkOf(link, here)))
  return [element("h2", null, section.name), list]
}

// On a phone the side bar lies over the page that was chosen.
const PHONE_PX = 640
const leaveSideBar = () => {
  if (window.innerWidth <= PHONE_PX) document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click()
}

const start = (root, parentElement) => {
  root.addEventListener("click", (event) => {
    const link = isPlainClick(event) && event.target.closest("a")
    if (!link) return
    event.preventDefault()
    goTo(link.href)
    leaveSideBar()
  })
  const instance = { text: "" }
  instances.set(parentElement, instance)
  return instance
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".nav")
  const instance = instances.get(parentElement) ?? start(root, parentElement)
  // The same links stay as they are, so that the one with the focus keeps it.
  const text = JSON.stringify([data, window.location.pathname])
  if (instance.text !== text) root.replaceChildren(...data.sections.flatMap((section) => sectionOf(section, data.here)))
  instance.text = text
  return () => instances.delete(parentElement)
}
