"""Valid files of every format, in odd forms, each with the words that it shows."""
