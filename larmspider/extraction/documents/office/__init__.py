"""Office Open XML, OpenDocument, old Excel, and the formats of cells."""
