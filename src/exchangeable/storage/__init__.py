"""The container of model files, the checks before anything read is used, and safe replacement."""
