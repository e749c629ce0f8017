"""Mails: RFC 5322, MHTML, mail boxes, Outlook, TNEF, S/MIME."""
