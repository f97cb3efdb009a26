"""Files instead of a machine: what people attach to tickets, read into the facts that live sources emit."""
