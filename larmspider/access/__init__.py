"""Who may read a document: access lists, their judges, the table of an index, and the sources."""
