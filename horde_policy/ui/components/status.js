// Where the figures are from and how old they are. The age ticks here, in the browser, without asking the server.

const instances = new WeakMap()

const show = (part, data) => {
  part.kind.textContent = data.failing ? "failing" : data.label
  part.kind.className = `kind ${data.failing ? "failing" : data.kind}`
  part.name.textContent = data.source
  part.name.title = data.source
  part.at.textContent = data.at
  part.at.title = data.at_ms === null ? "" : `${new Date(data.at_ms).toLocaleString()} in your time zone`
  part.age.textContent = ""
  part.trouble.textContent = data.trouble ?? ""
  part.note.textContent = data.note ?? ""
}

// The age starts from what the server measured, so a viewer's clock that is wrong does not matter; it starts anew only when
// the server did measure again.
const tick = (instance) => {
  const { part, data } = instance
  const ageS = data.age_s + (Date.now() - instance.receivedAt) / 1000
  const stale = data.age_limit_s !== null && ageS > data.age_limit_s
  const text = formatAge(ageS)
  part.age.textContent = `${text} old`
  if (stale && !data.failing) {
    part.kind.className = "kind stale"
    part.kind.textContent = "stale"
  }
  tellAge({ text, stale })
}

// The server draws figures in the viewer's theme, so with another one the page runs again: Streamlit follows the address anew.
const followTheme = (instance, root) => {
  const surface = getComputedStyle(root).getPropertyValue("--st-background-color")
  if (instance.surface !== undefined && instance.surface !== surface) window.dispatchEvent(new PopStateEvent("popstate", { state: {} }))
  instance.surface = surface
}

export default function ({ data, parentElement }) {
  let instance = instances.get(parentElement)
  if (!instance) {
    const root = parentElement.querySelector(".status")
    const part = Object.fromEntries([...root.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]))
    part.copy.onclick = (event) => copyLink(event.currentTarget)
    instance = { part, told: () => instance.data.ticking && tick(instance) }
    window.addEventListener(ASK_EVENT, instance.told)
    instances.set(parentElement, instance)
  }
  followTheme(instance, parentElement.querySelector(".status"))
  const text = JSON.stringify(data)
  if (instance.text !== text) {
    instance.text = text
    instance.receivedAt = Date.now()
  }
  instance.data = data
  show(instance.part, data)
  clearInterval(instance.timer)
  if (data.ticking) {
    tick(instance)
    instance.timer = setInterval(() => tick(instance), 1000)
  }
  return () => {
    clearInterval(instance.timer)
    window.removeEventListener(ASK_EVENT, instance.told)
    instances.delete(parentElement)
  }
}
