// Where the figures are from and how old they are. The age ticks here, in the browser, without asking the server.

const instances = new WeakMap()

const copyLink = async (button) => {
  const link = window.location.href
  try {
    await navigator.clipboard.writeText(link)
    button.textContent = "Link copied"
  } catch {
    // No clipboard without a secure context: offer the link for copying by hand.
    window.prompt("Copy this link", link)
  }
  setTimeout(() => { button.textContent = "Copy link" }, 2000)
}

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

export default function ({ data, parentElement }) {
  let instance = instances.get(parentElement)
  if (!instance) {
    const root = parentElement.querySelector(".status")
    const part = Object.fromEntries([...root.querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]))
    part.copy.onclick = (event) => copyLink(event.currentTarget)
    instance = { part }
    instances.set(parentElement, instance)
  }
  const part = instance.part
  show(part, data)
  runAge(instance, data, (ageS) => {
    if (!data.ticking) return
    part.age.textContent = `${formatAge(ageS)} old`
    if (!data.failing && ageS > data.age_limit_s) {
      part.kind.className = "kind stale"
      part.kind.textContent = "stale"
    }
  })
  return () => {
    clearInterval(instance.timer)
    instances.delete(parentElement)
  }
}
