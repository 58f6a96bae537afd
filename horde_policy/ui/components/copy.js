// Puts the address of what is shown on the clipboard.

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
