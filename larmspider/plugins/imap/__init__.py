"""Mailboxes, read by IMAP: ``imaps://mail.example/INBOX/``."""
