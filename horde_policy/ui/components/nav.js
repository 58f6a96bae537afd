// The pages, section by section. Each is a real link, which carries what all pages share.

const instances = new WeakMap()

const linkOf = (link) => {
  const made = element("a")
  made.title = link.help
  const icon = element("span", "icon", link.icon)
  icon.setAttribute("aria-hidden", "true")
  icon.setAttribute("translate", "no")
  made.append(icon, element("span", "label", link.label))
  const item = element("li")
  item.append(made)
  return item
}

const sectionOf = (section) => {
  const list = element("ul")
  list.append(...section.links.map(linkOf))
  return [element("h2", null, section.name), list]
}

// Where the screen is narrow the side bar lies over the page that was chosen.
const leaveSideBar = () => {
  const [bar, page] = ["stSidebar", "stMain"].map((part) => document.querySelector(`[data-testid="${part}"]`)?.getBoundingClientRect())
  if (bar && page && page.left < bar.right) document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click()
}

const start = (root, parentElement, library) => {
  root.addEventListener("click", (event) => {
    const link = isPlainClick(event) && event.target.closest("a")
    if (!link) return
    event.preventDefault()
    goTo(link.href)
    leaveSideBar()
  })
  const instance = { text: "" }
  instances.set(parentElement, instance)
  libraryAt(library).catch(() => {}) // a figure says that it did not come
  return instance
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".nav")
  const instance = instances.get(parentElement) ?? start(root, parentElement, data.library)
  // The links stay, whatever page is shown, so that the one with the focus keeps it: only where they lead and the mark change.
  const links = data.sections.flatMap((section) => section.links)
  const text = JSON.stringify(links.map((link) => [link.page, link.label]))
  if (instance.text !== text) root.replaceChildren(...data.sections.flatMap(sectionOf))
  instance.text = text
  root.querySelectorAll("a").forEach((made, place) => {
    const { page, query } = links[place]
    made.href = addressOf(data.here, page, query)
    if (page === data.here) made.setAttribute("aria-current", "page")
    else made.removeAttribute("aria-current")
  })
  return () => instances.delete(parentElement)
}
