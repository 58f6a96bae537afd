// The age as words, as horde_policy.views.text.age writes it (a browser test compares the two), and its clock.
// Put before status.js and pulse.js.

const formatAge = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min`
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`
}

// Calls show(age in seconds) at once, and each second if the age ticks. The age starts from what the server measured, so a
// viewer's clock that is wrong does not matter; it starts anew only when the data did change.
const runAge = (instance, data, show) => {
  const text = JSON.stringify(data)
  if (instance.text !== text) {
    instance.text = text
    instance.receivedAt = Date.now()
  }
  const tick = () => show(data.age_s + (Date.now() - instance.receivedAt) / 1000)
  clearInterval(instance.timer)
  if (data.age_s === null) return
  tick()
  if (data.ticking) instance.timer = setInterval(tick, 1000)
}
