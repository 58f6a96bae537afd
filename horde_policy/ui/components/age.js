// The age as words, as horde_policy.views.text.age writes it (a browser test compares the two), and its clock.
// Put before status.js and pulse.js.

const formatAge = (seconds) => {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min`
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`
}

// One part of a page knows the age, the status; the others hear of it, so that all show the same.
const AGE_EVENT = "horde-policy-age"
const ASK_EVENT = "horde-policy-age-asked"
const tellAge = (told) => window.dispatchEvent(new CustomEvent(AGE_EVENT, { detail: told }))
