// Plotly's own library, once a page and for all its figures. The navigation asks for it first, so that it comes while the server
// still works on the page's figures. Put before figure.js and nav.js.

// Where the app lies, whatever sub-path a proxy serves it under: two folders above Streamlit's own script.
const homeOf = () => new URL("../../", [...document.scripts].find((script) => script.src.includes("/static/js/")).src)

const libraryAt = (path) => (window.hordePolicyLibrary ??= new Promise((resolve, reject) => {
  const script = document.createElement("script")
  script.src = new URL(path, homeOf())
  script.onload = () => resolve(window.Plotly)
  script.onerror = () => {
    script.remove()
    window.hordePolicyLibrary = undefined
    reject(new Error(script.src))
  }
  document.head.append(script)
}))
