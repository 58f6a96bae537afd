"""Plain, slow second implementations that the fast ones are compared with."""
