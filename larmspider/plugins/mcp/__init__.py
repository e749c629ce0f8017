"""The Model Context Protocol: assistants search the pages of a server, and read them."""
