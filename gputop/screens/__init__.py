"""What is on screen: the panes' rows put into widgets, and keys turned into changes of what is shown."""
