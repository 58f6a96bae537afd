"""What a production week shows: decisions, waits, bounds, findings."""
