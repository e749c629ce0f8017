"""Files of SMB servers, read without a mount: ``smb://nas/share/folder/``."""
