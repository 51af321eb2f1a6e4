"""Claims are made here, from what searches know. Nothing here is trusted: `verify` decides."""
