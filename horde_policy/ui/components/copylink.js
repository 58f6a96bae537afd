// The copy of the link alone, for a page without a status line.

export default function ({ parentElement }) {
  parentElement.querySelector("button").onclick = (event) => copyLink(event.currentTarget)
}
