"""Where claims are made: searches for evidence. Nothing here is trusted, the checker decides."""
