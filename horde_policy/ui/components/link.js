// Links that stay within the page. A plain click changes the address and lets Streamlit follow it as it follows back and
// forward; with a modifier key or the middle button the browser opens the link as any other.

const goTo = (address) => {
  window.history.pushState({}, "", address)
  window.dispatchEvent(new PopStateEvent("popstate", { state: {} }))
}

const isPlainClick = (event) => event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey

// The address of a page beside the one that is shown, whatever sub-path a proxy serves the app under. ``here`` is this page's
// own name, which is missing from the address where the page is the app's first.
const addressOf = (here, page, query) => {
  const path = window.location.pathname
  const folder = path.endsWith(`/${here}`) ? path.slice(0, -here.length) : path.endsWith("/") ? path : `${path}/`
  return `${folder}${page}${query ? `?${query}` : ""}`
}
