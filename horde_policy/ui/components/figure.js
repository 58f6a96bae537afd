// A figure: Plotly draws it once for each change, and what is the same as before not at all.

const instances = new WeakMap()

const WHOLE_SCREEN = {
  name: "Full screen",
  title: "Full screen",
  icon: { width: 14, height: 14, path: "M1 5V1h4v1.6H2.6V5zM9 1h4v4h-1.6V2.6H9zM1 9h1.6v2.4H5V13H1zM11.4 9H13v4H9v-1.6h2.4z" },
  click: (root) => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen()),
}
const BUTTONS = [WHOLE_SCREEN]

const sizeOf = ({ root, data }) => ({
  width: root.clientWidth,
  height: document.fullscreenElement === root ? window.innerHeight : data.layout.height,
})

// A box tells its ends on the axis x, a mark what it was given to tell. Neither stays on the figure: what they change is shown.
const heard = (instance) => ({
  plotly_selected: (event) => {
    const box = event?.selections?.find((selection) => selection.type === "rect")
    if (!box) return
    window.Plotly.relayout(instance.root, { selections: [] })
    if (instance.data.box) instance.tell("box", [box.x0, box.x1])
  },
  plotly_click: (event) => {
    const told = event.points.map((point) => point.customdata).find((data) => data?.length)
    if (instance.data.mark && told) instance.tell("mark", told)
  },
})

const draw = (instance) => {
  const { root, data } = instance
  if (!root.clientWidth) return // within what is folded: drawn as soon as it has a width
  const size = sizeOf(instance)
  if (!instance.drawn) root.replaceChildren() // what it said while the library did not come
  Object.assign(instance, { drawn: data, size })
  // Plotly writes into what it is given.
  window.Plotly.react(root, JSON.parse(data.traces), { ...structuredClone(data.layout), ...size }, { ...data.config, modeBarButtonsToAdd: BUTTONS })
  // With another tool bar Plotly begins anew, and forgets who listens.
  for (const [event, hear] of Object.entries(heard(instance))) {
    root.removeAllListeners(event)
    root.on(event, hear)
  }
}

const fit = (instance) => {
  if (!window.Plotly || !instance.root.clientWidth) return
  const size = sizeOf(instance)
  if (instance.drawn !== instance.data) draw(instance)
  else if (size.width !== instance.size.width || size.height !== instance.size.height) {
    instance.size = size
    window.Plotly.relayout(instance.root, size)
  }
}

const start = (root, parentElement) => {
  const instance = { root, text: "" }
  instance.observer = new ResizeObserver(() => fit(instance))
  instance.observer.observe(root)
  instances.set(parentElement, instance)
  return instance
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".horde-figure")
  const instance = instances.get(parentElement) ?? start(root, parentElement)
  instance.tell = setTriggerValue
  const text = JSON.stringify(data)
  if (instance.text !== text) {
    Object.assign(instance, { text, data })
    root.setAttribute("aria-label", data.alt)
    root.style.minHeight = `${data.layout.height}px`
    if (window.Plotly) draw(instance)
    else
      libraryAt(data.library).then(
        () => fit(instance),
        (error) => (root.textContent = `This figure cannot be drawn: ${error.message} did not come. ${data.alt}`),
      )
  }
  return () => {
    instance.observer.disconnect()
    instances.delete(parentElement)
    if (instance.drawn) window.Plotly.purge(root)
  }
}
