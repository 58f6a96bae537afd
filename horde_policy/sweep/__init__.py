"""Search over settings, and judgement of what it found."""
