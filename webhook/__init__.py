"""The admission side: one file a dialect, one JSON patch a Pod."""
