"""Outside systems, one folder each: they turn what a system says into facts and know nothing of the screen."""
