"""The estimators: the classes that users import."""
