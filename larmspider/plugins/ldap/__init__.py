"""Signs people in by a directory: Active Directory, OpenLDAP."""
